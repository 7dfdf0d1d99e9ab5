#include "io/fault_guard.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "scratch.hpp"

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
  [[nodiscard]] const std::byte* begin() const { return const_cast<const std::byte*>(map_); }

  test::ScratchFolder scratch_;
  std::string path_ = scratch_.file("ones");
  int fd_ = -1;
  volatile std::byte* map_ = nullptr;
};

TEST_F(FaultGuardTest, TruncationReadsZerosAndIsNoted) {
  FaultGuard guard(begin(), kBytes);
  EXPECT_EQ(at(5 * 4096), std::byte{1});
  EXPECT_FALSE(guard.faulted());
  std::filesystem::resize_file(path_, 4096);
  EXPECT_EQ(at(5 * 4096 + 17), std::byte{0});
  EXPECT_TRUE(guard.faulted());
  EXPECT_EQ(at(0), std::byte{1}) << "what is still there must stay readable";
}

TEST_F(FaultGuardTest, GuardsAreApart) {
  FaultGuard first(begin(), kBytes / 2);
  {
    FaultGuard second(begin() + kBytes / 2, kBytes / 2);
    std::filesystem::resize_file(path_, 0);
    EXPECT_EQ(at(kBytes - 1), std::byte{0});
    EXPECT_TRUE(second.faulted());
    EXPECT_FALSE(first.faulted());
  }
  FaultGuard reused(begin() + kBytes / 2, kBytes / 2);
  EXPECT_FALSE(reused.faulted()) << "a new guard must not inherit a fault";
}

using FaultGuardDeathTest = FaultGuardTest;

TEST_F(FaultGuardDeathTest, FaultOutsideOfGuardsStillEndsTheProcess) {
  EXPECT_EXIT(
      {
        ::signal(SIGBUS, SIG_DFL);  // a sanitizer has put its own handler there
        const FaultGuard guard(begin(), 4096);
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
        const FaultGuard guard(begin(), 4096);
        std::filesystem::resize_file(path_, 4096);
        (void)at(2 * 4096);
        std::_Exit(0);
      },
      ::testing::ExitedWithCode(42), "");
}

}  // namespace
}  // namespace chunkio::io
