#include "cli/file_bytes.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include <chunkio/error.hpp>

#include "cli/quote.hpp"

namespace cli {

namespace {

using chunkio::Error;
using chunkio::ErrorCode;

constexpr std::int64_t kMaxFileBytes = std::int64_t{2} << 30;

FileStamp stamp_of(const struct ::stat& status) noexcept {
  return {status.st_size, static_cast<std::int64_t>(status.st_mtim.tv_sec) * 1'000'000'000 +
                              status.st_mtim.tv_nsec};
}

}  // namespace

void throw_errno(const std::string& action, const std::string& name) {
  const int number = errno;
  // What this process ran out of is no fault of the file.
  const bool exhausted = number == EMFILE || number == ENFILE || number == ENOMEM;
  throw Error(exhausted ? ErrorCode::out_of_resources
                        : (number == ENOENT ? ErrorCode::not_found : ErrorCode::io_failed),
              "cannot " + action + " " + name + ": " + std::generic_category().message(number));
}

FileStamp file_stamp(const std::string& path) noexcept {
  struct ::stat status {};
  return ::stat(path.c_str(), &status) == 0 ? stamp_of(status) : FileStamp{};
}

// O_NONBLOCK: a pipe that took the place of an image must not hold up the pack.
SourceFile::SourceFile(const std::string& path)
    : path_(&path), fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (fd_ < 0) throw_errno("open", quote(path));
}

SourceFile::~SourceFile() { ::close(fd_); }  // It was only read: there is nothing to report.

FileStamp SourceFile::stamp() const {
  struct ::stat status {};
  if (::fstat(fd_, &status) != 0) throw_errno("examine", quote(*path_));
  if (!S_ISREG(status.st_mode)) {
    throw Error(ErrorCode::unsupported, quote(*path_) + " is not a regular file");
  }
  return stamp_of(status);
}

void SourceFile::check_unchanged(const FileStamp& listed) const {
  if (stamp() == listed) return;
  throw Error(ErrorCode::io_failed,
              quote(*path_) + " was changed after it was listed; pack when nothing changes");
}

void SourceFile::read_at(std::int64_t offset, std::span<std::uint8_t> bytes) const {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ::ssize_t count = ::pread(fd_, bytes.data() + done, bytes.size() - done,
                                    offset + static_cast<std::int64_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_errno("read", quote(*path_));
    if (count == 0) {
      throw Error(ErrorCode::io_failed, quote(*path_) + " became shorter while it was read");
    }
    done += static_cast<std::size_t>(count);
  }
}

void FileBytes::read(const std::string& path, const std::optional<FileStamp>& expected) {
  const SourceFile file(path);
  // Whatever happens to a listed file until its last byte is read shows in its status afterwards,
  // so one look is enough: beside opening it, that is what a small file costs most. Without a stamp
  // its size must be known first.
  const FileStamp stamp = expected ? *expected : file.stamp();
  if (stamp.size > kMaxFileBytes) {
    throw Error(ErrorCode::unsupported, quote(path) + " is larger than 2 GiB");
  }
  size_ = static_cast<std::size_t>(stamp.size);
  make_room();
  try {
    file.read_at(0, {data_.get(), size_});
  } catch (const Error&) {
    // What was changed, or is no file any more, says more than that it could not be read.
    if (expected) file.check_unchanged(*expected);
    throw;
  }
  if (expected) file.check_unchanged(*expected);
  if (size_ == 0) {
    throw Error(ErrorCode::corrupt_data, quote(path) + " is empty (0 bytes): remove or replace it");
  }
}

void FileBytes::make_room() {
  if (size_ <= capacity_) return;
  capacity_ = std::max(size_, capacity_ * 2);
  data_ = std::make_unique_for_overwrite<std::uint8_t[]>(capacity_);
}

std::string read_text(const std::string& path) {
  FileBytes file;
  file.read(path);
  return {file.bytes().begin(), file.bytes().end()};
}

std::string read_standard_input(const std::string& what, std::size_t most) {
  std::string text;
  std::array<char, std::size_t{1} << 16> block{};
  while (text.size() < most) {
    const ::ssize_t count =
        ::read(STDIN_FILENO, block.data(), std::min(block.size(), most - text.size()));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_errno("read", what + " from standard input");
    if (count == 0) break;
    text.append(block.data(), static_cast<std::size_t>(count));
  }
  return text;
}

}  // namespace cli
