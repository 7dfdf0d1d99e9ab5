#include "file_bytes.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include <chunkio/error.hpp>

#include "in_quotes.hpp"

namespace h5pack {

namespace {

using chunkio::Error;
using chunkio::ErrorCode;

constexpr std::int64_t kMaxFileBytes = std::int64_t{2} << 30;

[[noreturn]] void throw_errno(const std::string& action, const std::string& path) {
  const int number = errno;
  // What this process ran out of is no fault of the file.
  const bool exhausted = number == EMFILE || number == ENFILE || number == ENOMEM;
  throw Error(
      exhausted ? ErrorCode::out_of_resources
                : (number == ENOENT ? ErrorCode::not_found : ErrorCode::io_failed),
      "cannot " + action + " " + in_quotes(path) + ": " + std::generic_category().message(number));
}

FileStamp stamp_of(const struct ::stat& status) noexcept {
  return {status.st_size, static_cast<std::int64_t>(status.st_mtim.tv_sec) * 1'000'000'000 +
                              status.st_mtim.tv_nsec};
}

/// Closes on every way out; a read-only descriptor has nothing to report at close.
class OpenFile {
 public:
  // O_NONBLOCK: a pipe that took the place of a picture must not hold up the pack.
  explicit OpenFile(const std::string& path)
      : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (fd_ < 0) throw_errno("open", path);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() { ::close(fd_); }
  [[nodiscard]] int fd() const noexcept { return fd_; }

 private:
  int fd_;
};

FileStamp stamp_of_regular(const OpenFile& file, const std::string& path) {
  struct ::stat status {};
  if (::fstat(file.fd(), &status) != 0) throw_errno("examine", path);
  if (!S_ISREG(status.st_mode)) {
    throw Error(ErrorCode::unsupported, in_quotes(path) + " is not a regular file");
  }
  return stamp_of(status);
}

/// \returns how many bytes there were, or -1 with errno.
::ssize_t read_all(const OpenFile& file, std::span<std::uint8_t> bytes) noexcept {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ::ssize_t count = ::read(file.fd(), bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return -1;
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  return static_cast<::ssize_t>(done);
}

}  // namespace

FileStamp file_stamp(const std::string& path) noexcept {
  struct ::stat status {};
  return ::stat(path.c_str(), &status) == 0 ? stamp_of(status) : FileStamp{};
}

void FileBytes::read(const std::string& path, const std::optional<FileStamp>& expected) {
  const OpenFile file(path);
  // Whatever happens to a listed file until its last byte is read shows in its status afterwards,
  // so one look is enough: beside opening it, that is what a small file costs most. Without a stamp
  // its size must be known first.
  const FileStamp stamp = expected ? *expected : stamp_of_regular(file, path);
  if (stamp.size > kMaxFileBytes) {
    throw Error(ErrorCode::unsupported, in_quotes(path) + " is larger than 2 GiB");
  }
  size_ = static_cast<std::size_t>(stamp.size);
  make_room();
  const ::ssize_t count = read_all(file, {data_.get(), size_});
  const int number = errno;
  if (expected && stamp_of_regular(file, path) != *expected) {
    throw Error(ErrorCode::io_failed,
                in_quotes(path) + " was changed after it was listed; pack when nothing changes");
  }
  errno = number;
  if (count < 0) throw_errno("read", path);
  if (std::cmp_less(count, size_)) {
    throw Error(ErrorCode::io_failed, in_quotes(path) + " became shorter while it was read");
  }
  if (size_ == 0) {
    throw Error(ErrorCode::corrupt_data,
                in_quotes(path) + " is empty (0 bytes): remove or replace it");
  }
}

void FileBytes::make_room() {
  if (size_ <= capacity_) return;
  capacity_ = std::max(size_, capacity_ * 2);
  data_ = std::make_unique_for_overwrite<std::uint8_t[]>(capacity_);
}

}  // namespace h5pack
