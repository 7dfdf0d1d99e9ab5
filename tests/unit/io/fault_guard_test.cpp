#include "io/fault_guard.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "support/scratch.hpp"

namespace chunkio::io {
namespace {

constexpr std::size_t kBytes = 16 * 4096;

/// A mapped file of ones.
class FaultGuardTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(path_) << std::string(kBytes, '\1');
    fd_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    void* map = ::mmap(nullptr, kBytes, PROT_READ, MAP_SHARED, fd_, 0);
    ASSERT_NE(map, MAP_FAILED);
    map_ = static_cast<volatile std::byte*>(map);
  }
  void TearDown() override {
    ::munmap(const_cast<std::byte*>(map_), kBytes);
    ::close(fd_);
  }
  [[nodiscard]] std::byte at(std::size_t i) const { return map_[i]; }
  [[nodiscard]] std::byte* begin() const { return const_cast<std::byte*>(map_); }

  test::ScratchFolder scratch_;
  std::string path_ = scratch_.file("ones");
  int fd_ = -1;
  volatile std::byte* map_ = nullptr;
};

TEST_F(FaultGuardTest, ABadPageFailsTheCopiesThatTouchItAndNoOther) {
  const FaultGuard guard(begin(), kBytes, fd_);
  EXPECT_TRUE(guard.read([&] { EXPECT_EQ(at(5 * 4096), std::byte{1}); }));
  std::filesystem::resize_file(path_, 4096);
  for (int round = 0; round < 3; ++round) {
    EXPECT_FALSE(guard.read([&] { EXPECT_EQ(at(5 * 4096 + 17), std::byte{0}); })) << round;
    EXPECT_TRUE(guard.read([&] { EXPECT_EQ(at(17), std::byte{1}); })) << round;
  }
  // Its zeros are not believed when the page is good again.
  std::ofstream(path_) << std::string(kBytes, '\2');
  EXPECT_TRUE(guard.read([&] { EXPECT_EQ(at(5 * 4096 + 17), std::byte{2}); }));
}

TEST_F(FaultGuardTest, ACopyBesideAFaultInAnotherThreadRunsAgain) {
  const FaultGuard guard(begin(), kBytes, fd_);
  std::filesystem::resize_file(path_, 4096);
  int copies = 0;
  EXPECT_TRUE(guard.read([&] {
    EXPECT_EQ(at(17), std::byte{1});
    if (++copies > 1) return;
    std::thread([&] { EXPECT_FALSE(guard.read([&] { (void)at(5 * 4096); })); }).join();
  }));
  EXPECT_EQ(copies, 2);
  // And one that meets the zeros of another thread touches the page itself when it runs again.
  copies = 0;
  EXPECT_FALSE(guard.read([&] {
    if (++copies == 1) {
      std::thread([&] { EXPECT_FALSE(guard.read([&] { (void)at(5 * 4096); })); }).join();
    }
    EXPECT_EQ(at(5 * 4096 + 17), std::byte{0});
  }));
  EXPECT_EQ(copies, 2);
}

TEST_F(FaultGuardTest, ManyThreadsNeverBelieveZeros) {
  const FaultGuard guard(begin(), kBytes, fd_);
  std::filesystem::resize_file(path_, 8 * 4096);
  std::vector<std::jthread> threads;
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; i < 500; ++i) {
        const std::size_t page = (i * 7 + t * 3) % 16;
        std::byte seen{};
        const bool whole = guard.read([&] { seen = at(page * 4096 + 5); });
        ASSERT_EQ(whole, page < 8) << page;
        ASSERT_EQ(seen, whole ? std::byte{1} : std::byte{0});
      }
    });
  }
}

TEST_F(FaultGuardTest, GuardsAreApart) {
  void* other = ::mmap(nullptr, kBytes, PROT_READ, MAP_SHARED, fd_, 0);
  ASSERT_NE(other, MAP_FAILED);
  {
    const FaultGuard first(begin(), kBytes, fd_);
    const FaultGuard second(static_cast<std::byte*>(other), kBytes, fd_);
    std::filesystem::resize_file(path_, 4096);
    int copies = 0;
    EXPECT_TRUE(first.read([&] {
      ++copies;
      std::thread([&] {
        EXPECT_FALSE(
            second.read([&] { (void)static_cast<volatile std::byte*>(other)[kBytes - 1]; }));
      }).join();
    }));
    EXPECT_EQ(copies, 1) << "a fault in another mapping must not disturb";
  }
  const FaultGuard reused(static_cast<std::byte*>(other), kBytes, fd_);
  EXPECT_TRUE(reused.read([] {})) << "a new guard must not inherit a fault";
  ::munmap(other, kBytes);
}

using FaultGuardDeathTest = FaultGuardTest;

TEST_F(FaultGuardDeathTest, FaultOutsideOfGuardsStillEndsTheProcess) {
  EXPECT_EXIT(
      {
        ::signal(SIGBUS, SIG_DFL);  // a sanitizer has put its own handler there
        const FaultGuard guard(begin(), 4096, fd_);
        std::filesystem::resize_file(path_, 4096);
        (void)at(2 * 4096);
        std::_Exit(0);
      },
      ::testing::KilledBySignal(SIGBUS), "");
}

TEST_F(FaultGuardDeathTest, FaultOutsideOfGuardsGoesToTheHandlerThatWasThere) {
  // In a child, since the first guard of a process installs the handler for good.
  EXPECT_EXIT(
      {
        struct sigaction action {};
        action.sa_handler = [](int) { std::_Exit(42); };
        ::sigaction(SIGBUS, &action, nullptr);
        const FaultGuard guard(begin(), 4096, fd_);
        std::filesystem::resize_file(path_, 4096);
        (void)at(2 * 4096);
        std::_Exit(0);
      },
      ::testing::ExitedWithCode(42), "");
}

TEST_F(FaultGuardDeathTest, ASentSignalEndsTheProcessAsItWouldHaveWithoutAGuard) {
  EXPECT_EXIT(
      {
        ::signal(SIGBUS, SIG_DFL);
        const FaultGuard guard(begin(), kBytes, fd_);
        ::raise(SIGBUS);
        std::_Exit(0);
      },
      ::testing::KilledBySignal(SIGBUS), "");
}

// Exits with `code` if a bad page is an error of the copy that touches it, as it should be.
[[noreturn]] void exit_if_guarded(const FaultGuard& guard, const std::function<void()>& bad_copy,
                                  int code) {
  std::_Exit(guard.read(bad_copy) ? 1 : code);
}

TEST_F(FaultGuardDeathTest, ASentSignalThatIsIgnoredStaysIgnoredAndTheGuardStays) {
  EXPECT_EXIT(
      {
        ::signal(SIGBUS, SIG_IGN);
        const FaultGuard guard(begin(), kBytes, fd_);
        ::raise(SIGBUS);
        std::filesystem::resize_file(path_, 4096);
        exit_if_guarded(
            guard, [&] { (void)at(2 * 4096); }, 42);
      },
      ::testing::ExitedWithCode(42), "");
}

TEST_F(FaultGuardDeathTest, AFaultOutsideOfGuardsEndsAProcessThatIgnoresTheSignal) {
  EXPECT_EXIT(
      {
        ::signal(SIGBUS, SIG_IGN);  // the kernel ignores no fault
        const FaultGuard guard(begin(), 4096, fd_);
        std::filesystem::resize_file(path_, 4096);
        (void)at(2 * 4096);
        std::_Exit(0);
      },
      ::testing::KilledBySignal(SIGBUS), "");
}

TEST_F(FaultGuardDeathTest, ASentSignalGoesToTheHandlerThatWasThereAndTheGuardStays) {
  EXPECT_EXIT(
      {
        static volatile std::sig_atomic_t calls = 0;
        struct sigaction action {};
        action.sa_handler = [](int) { calls = calls + 1; };
        ::sigaction(SIGBUS, &action, nullptr);
        const FaultGuard guard(begin(), kBytes, fd_);
        ::raise(SIGBUS);
        std::filesystem::resize_file(path_, 4096);
        exit_if_guarded(
            guard, [&] { (void)at(2 * 4096); }, calls == 1 ? 42 : 2);
      },
      ::testing::ExitedWithCode(42), "");
}

/// Sends this thread what the kernel sends a process that wants to know early of a bad page.
void send_news_of_a_bad_page(void* address) {
  siginfo_t info{};
  info.si_signo = SIGBUS;
  info.si_code = BUS_MCEERR_AO;
  info.si_addr = address;
  ASSERT_EQ(::syscall(SYS_rt_tgsigqueueinfo, ::getpid(), ::gettid(), SIGBUS, &info), 0);
}

TEST_F(FaultGuardDeathTest, NewsOfABadPageGoesToTheHandlerThatWasThereAndFailsNoCopy) {
  EXPECT_EXIT(
      {
        static volatile std::sig_atomic_t calls = 0;
        struct sigaction action {};
        action.sa_handler = [](int) { calls = calls + 1; };
        ::sigaction(SIGBUS, &action, nullptr);
        const FaultGuard guard(begin(), kBytes, fd_);
        std::byte seen{};
        const bool whole = guard.read([&] {
          send_news_of_a_bad_page(begin() + 5 * 4096);
          seen = at(5 * 4096);
        });
        std::_Exit(whole && seen == std::byte{1} && calls == 1 ? 42 : 2);
      },
      ::testing::ExitedWithCode(42), "");
}

TEST_F(FaultGuardDeathTest, NewsOfABadPageEndsTheProcessAsItWouldHaveWithoutAGuard) {
  EXPECT_EXIT(
      {
        ::signal(SIGBUS, SIG_DFL);
        const FaultGuard guard(begin(), kBytes, fd_);
        send_news_of_a_bad_page(begin() + 5 * 4096);
        std::_Exit(0);
      },
      ::testing::KilledBySignal(SIGBUS), "");
}

TEST_F(FaultGuardDeathTest, ANewGuardTakesTheSignalBackFromADefaultThatSomebodySet) {
  EXPECT_EXIT(
      {
        { const FaultGuard first(begin(), kBytes, fd_); }
        ::signal(SIGBUS, SIG_DFL);
        const FaultGuard guard(begin(), kBytes, fd_);
        std::filesystem::resize_file(path_, 4096);
        exit_if_guarded(
            guard, [&] { (void)at(2 * 4096); }, 42);
      },
      ::testing::ExitedWithCode(42), "");
}

}  // namespace
}  // namespace chunkio::io
