#include "cli/checked_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include <chunkio/error.hpp>

#include "cli/quote.hpp"

namespace cli {

namespace {

using chunkio::Error;
using chunkio::ErrorCode;

[[noreturn]] void throw_errno(const std::string& action, const std::string& path) {
  const int number = errno;
  // What this process ran out of is no fault of the file.
  const bool exhausted = number == EMFILE || number == ENFILE || number == ENOMEM;
  throw Error(
      exhausted ? ErrorCode::out_of_resources
                : (number == ENOENT ? ErrorCode::not_found : ErrorCode::io_failed),
      "cannot " + action + " " + quote(path) + ": " + std::generic_category().message(number));
}

FileStamp stamp_of(const struct ::stat& status) noexcept {
  return {status.st_size, static_cast<std::int64_t>(status.st_mtim.tv_sec) * 1'000'000'000 +
                              status.st_mtim.tv_nsec};
}

}  // namespace

FileStamp file_stamp(const std::string& path) noexcept {
  struct ::stat status {};
  return ::stat(path.c_str(), &status) == 0 ? stamp_of(status) : FileStamp{};
}

// O_NONBLOCK: a pipe that took the place of an image must not hold up the pack.
SourceFile::SourceFile(const std::string& path)
    : path_(&path), fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (fd_ < 0) throw_errno("open", path);
}

SourceFile::~SourceFile() { ::close(fd_); }  // It was only read: there is nothing to report.

FileStamp SourceFile::stamp() const {
  struct ::stat status {};
  if (::fstat(fd_, &status) != 0) throw_errno("examine", *path_);
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
    if (count < 0) throw_errno("read", *path_);
    if (count == 0) {
      throw Error(ErrorCode::io_failed, quote(*path_) + " became shorter while it was read");
    }
    done += static_cast<std::size_t>(count);
  }
}

}  // namespace cli
