#include "io/fault_guard.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
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

/// In a child, since the first guard of a process installs the handler for good.
class FaultGuardDeathTest : public FaultGuardTest {
 protected:
  /// SIGBUS does `before`; a guard of the first `bytes` is made; and what `end` says is the exit
  /// status of the process, unless a signal ends it.
  template <class End>
  [[noreturn]] void run(sighandler_t before, std::size_t bytes, End end) const {
    ::signal(SIGBUS, before);
    const FaultGuard guard(begin(), bytes, fd_);
    std::_Exit(end(guard));
  }
  /// A fault where no guard is.
  [[nodiscard]] int fault() const {
    std::filesystem::resize_file(path_, 4096);
    (void)at(2 * 4096);
    return 0;
  }
  /// 42 if a bad page is an error of the copy that touches it, as it should be.
  [[nodiscard]] int guarded(const FaultGuard& guard) const {
    std::filesystem::resize_file(path_, 4096);
    return guard.read([&] { (void)at(2 * 4096); }) ? 1 : 42;
  }

  static inline volatile std::sig_atomic_t calls = 0;  // of the handler that was there
  static void count(int) { calls = calls + 1; }
};

constexpr std::size_t kOnePage = 4096;
const ::testing::ExitedWithCode kAsItShould(42);
const ::testing::KilledBySignal kKilled(SIGBUS);

TEST_F(FaultGuardDeathTest, FaultOutsideOfGuardsStillEndsTheProcess) {
  // Of what a sanitizer put there nothing is left; and the kernel ignores no fault.
  for (const sighandler_t before : {SIG_DFL, SIG_IGN}) {
    EXPECT_EXIT(run(before, kOnePage, [&](const FaultGuard&) { return fault(); }), kKilled, "");
  }
}

TEST_F(FaultGuardDeathTest, FaultOutsideOfGuardsGoesToTheHandlerThatWasThere) {
  const sighandler_t exits = [](int) { std::_Exit(42); };
  EXPECT_EXIT(run(exits, kOnePage, [&](const FaultGuard&) { return fault(); }), kAsItShould, "");
}

TEST_F(FaultGuardDeathTest, ASentSignalEndsTheProcessAsItWouldHaveWithoutAGuard) {
  EXPECT_EXIT(run(SIG_DFL, kBytes, [](const FaultGuard&) { return ::raise(SIGBUS); }), kKilled, "");
}

TEST_F(FaultGuardDeathTest, ASentSignalThatIsIgnoredStaysIgnoredAndTheGuardStays) {
  const auto end = [&](const FaultGuard& guard) {
    ::raise(SIGBUS);
    return guarded(guard);
  };
  EXPECT_EXIT(run(SIG_IGN, kBytes, end), kAsItShould, "");
}

TEST_F(FaultGuardDeathTest, ASentSignalGoesToTheHandlerThatWasThereAndTheGuardStays) {
  const auto end = [&](const FaultGuard& guard) {
    ::raise(SIGBUS);
    return calls == 1 ? guarded(guard) : 2;
  };
  EXPECT_EXIT(run(count, kBytes, end), kAsItShould, "");
}

/// Sends this thread what the kernel sends a process that wants to know early of a bad page.
int send_news_of_a_bad_page(void* address) {
  siginfo_t info{};
  info.si_signo = SIGBUS;
  info.si_code = BUS_MCEERR_AO;
  info.si_addr = address;
  return static_cast<int>(::syscall(SYS_rt_tgsigqueueinfo, ::getpid(), ::gettid(), SIGBUS, &info));
}

TEST_F(FaultGuardDeathTest, NewsOfABadPageGoesToTheHandlerThatWasThereAndFailsNoCopy) {
  const auto end = [&](const FaultGuard& guard) {
    std::byte seen{};
    const bool whole = guard.read([&] {
      EXPECT_EQ(send_news_of_a_bad_page(begin() + 5 * 4096), 0);
      seen = at(5 * 4096);
    });
    return whole && seen == std::byte{1} && calls == 1 ? 42 : 2;
  };
  EXPECT_EXIT(run(count, kBytes, end), kAsItShould, "");
}

TEST_F(FaultGuardDeathTest, NewsOfABadPageEndsTheProcessAsItWouldHaveWithoutAGuard) {
  const auto end = [&](const FaultGuard&) { return send_news_of_a_bad_page(begin() + 5 * 4096); };
  EXPECT_EXIT(run(SIG_DFL, kBytes, end), kKilled, "");
}

TEST_F(FaultGuardDeathTest, ANewGuardTakesTheSignalBackFromADefaultThatSomebodySet) {
  const auto end = [&](const FaultGuard&) {
    ::signal(SIGBUS, SIG_DFL);
    return guarded(FaultGuard(begin(), kBytes, fd_));
  };
  EXPECT_EXIT(run(SIG_DFL, kBytes, end), kAsItShould, "");
}

}  // namespace
}  // namespace chunkio::io
