#include "base/positional_io.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "support/scratch.hpp"

namespace chunkio::base {
namespace {

ErrorCode code_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    return error.code();
  }
  ADD_FAILURE() << "nothing was thrown";
  return ErrorCode::cancelled;
}

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
  EXPECT_EQ(code_of([&] { read_at(file.get(), 0, out, path_); }), ErrorCode::corrupt_data);
  try {
    read_at(file.get(), 4, out, path_);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(path_), std::string::npos);
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
  EXPECT_EQ(code_of([&] { read_at_timed(file.get(), 2'999'990, out, path_); }),
            ErrorCode::corrupt_data);
  EXPECT_EQ(code_of([&] { read_at_timed(-1, 0, out, path_); }), ErrorCode::io_failed);
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

TEST_F(PositionalIo, OpenTellsMissingFromUnsuitable) {
  EXPECT_EQ(code_of([&] { (void)FileDescriptor::open_for_reading(path_); }), ErrorCode::not_found);
  EXPECT_EQ(code_of([&] { (void)FileDescriptor::open_for_reading(scratch_.path().string()); }),
            ErrorCode::unsupported);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  // Must not wait for somebody to open the other end.
  EXPECT_EQ(code_of([&] { (void)FileDescriptor::open_for_reading(path_); }),
            ErrorCode::unsupported);
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
  const ErrorCode code = code_of([&] { write_at(file.get(), 0, bytes, path_); });
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(code, ErrorCode::no_space);
}

}  // namespace
}  // namespace chunkio::base
