#include "base/positional_io.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <vector>

#include <gtest/gtest.h>

#include "support/errors.hpp"
#include "support/scratch.hpp"

namespace chunkio::base {
namespace {

using test::expect_error;

class PositionalIo : public ::testing::Test {
 protected:
  test::ScratchFolder scratch_;
  std::string path_ = scratch_.file("data");
};

TEST_F(PositionalIo, WritesAndReadsBack) {
  const FileDescriptor file(::open(path_.c_str(), O_RDWR | O_CREAT, 0600));
  const std::vector<std::byte> bytes(100000, std::byte{42});
  write_at(file.get(), 12345, bytes, path_);
  std::vector<std::byte> back(bytes.size());
  read_at(file.get(), 12345, back, path_);
  EXPECT_EQ(back, bytes);
}

TEST_F(PositionalIo, EndOfFileIsCorruptDataAndNamesTheFile) {
  std::ofstream(path_) << "ten bytes!";
  const FileDescriptor file = FileDescriptor::open_for_reading(path_);
  std::vector<std::byte> out(11);
  for (const std::int64_t offset : {0, 4}) {
    expect_error(ErrorCode::corrupt_data, {path_},
                 [&] { read_at(file.get(), offset, out, path_); });
  }
}

TEST_F(PositionalIo, TimedReadsBringTheSameBytesAndErrors) {
  std::vector<std::byte> bytes(3'000'000);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * i >> 3);
  const FileDescriptor file(::open(path_.c_str(), O_RDWR | O_CREAT, 0600));
  write_at(file.get(), 0, bytes, path_);
  ASSERT_EQ(::fdatasync(file.get()), 0);
  for (const bool cached : {true, false, true}) {
    if (!cached) ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
    std::vector<std::byte> back(bytes.size() - 7);
    const ReadTime time = read_at_timed(file.get(), 7, back, path_);
    EXPECT_TRUE(std::equal(back.begin(), back.end(), bytes.begin() + 7));
    EXPECT_GT(time.copied_seconds + time.waited_seconds, 0);
  }
  std::vector<std::byte> out(11);
  expect_error(ErrorCode::corrupt_data, {path_},
               [&] { read_at_timed(file.get(), 2'999'990, out, path_); });
  expect_error(ErrorCode::io_failed, {path_}, [&] { read_at_timed(-1, 0, out, path_); });
}

TEST_F(PositionalIo, TimedReadsTellStorageFromThePageCache) {
  const std::vector<std::byte> bytes(8 << 20, std::byte{1});
  const FileDescriptor file(::open(path_.c_str(), O_RDWR | O_CREAT, 0600));
  write_at(file.get(), 0, bytes, path_);
  std::byte one{};
  const iovec target{.iov_base = &one, .iov_len = 1};
  if (::preadv2(file.get(), &target, 1, 0, RWF_NOWAIT) != 1) {
    GTEST_SKIP() << "this file system cannot tell what is cached";
  }
  std::vector<std::byte> back(bytes.size());
  // Just written, so it is in the cache (a few pages may be gone if memory is short).
  const ReadTime cached = read_at_timed(file.get(), 0, back, path_);
  EXPECT_GT(cached.copied_seconds, cached.waited_seconds);
  ASSERT_EQ(::fdatasync(file.get()), 0);
  ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
  if (::preadv2(file.get(), &target, 1, 0, RWF_NOWAIT) == 1) {
    GTEST_SKIP() << "this file system keeps its pages";
  }
  EXPECT_GT(read_at_timed(file.get(), 0, back, path_).waited_seconds, 0);
}

TEST_F(PositionalIo, FileSizeLimitIsNoSpace) {
  const FileDescriptor file(::open(path_.c_str(), O_RDWR | O_CREAT, 0600));
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  struct rlimit small = before;
  small.rlim_cur = 4096;
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::vector<std::byte> bytes(8192);
  expect_error(ErrorCode::no_space, {path_}, [&] { write_at(file.get(), 0, bytes, path_); });
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
}

}  // namespace
}  // namespace chunkio::base
