#include "base/positional_io.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/stopwatch.hpp"

namespace chunkio::base {
namespace {

Error ends_early(std::int64_t offset, std::size_t missing, const std::string& path) {
  return Error(ErrorCode::corrupt_data, path + " ends at byte " + std::to_string(offset) + ", " +
                                            std::to_string(missing) +
                                            " more were expected; it is truncated or was changed "
                                            "while being read: copy or download it "
                                            "again");
}

}  // namespace

Error system_error(int error_number, const std::string& action, const std::string& path,
                   const std::string& hint) {
  ErrorCode code = ErrorCode::io_failed;
  if (error_number == ENOSPC || error_number == EDQUOT || error_number == EFBIG) {
    code = ErrorCode::no_space;
  } else if (error_number == ENOENT) {
    code = ErrorCode::not_found;
  } else if (error_number == ENOMEM) {
    code = ErrorCode::out_of_resources;
  }
  std::string message = "cannot " + action + " " + path + ": " + std::strerror(error_number);
  if (error_number == EMFILE) {
    message += "; raise the limit of open files (ulimit -n)";
  } else if (!hint.empty()) {
    message += "; " + hint;
  } else if (error_number == ENOSPC || error_number == EDQUOT) {
    message += "; make room, or choose another disk";
  } else if (error_number == EFBIG) {
    message += "; raise the limit of file sizes (ulimit -f), or make smaller files";
  }
  return Error(code, message);
}

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = other.release();
  }
  return *this;
}

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) ::close(fd_);
}

FileDescriptor FileDescriptor::open_for_reading(const std::string& path) {
  if (path.find('\0') != std::string::npos) {
    throw Error(ErrorCode::invalid_argument, "a file name holds a zero byte");
  }
  // Non-blocking, so that a FIFO in the way is an error and not a hang; no effect on regular files.
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid()) {
    throw system_error(errno, "open", path, "check the path and that you may read it");
  }
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) throw system_error(errno, "inspect", path);
  if (!S_ISREG(status.st_mode)) {
    throw Error(ErrorCode::unsupported, path + " is not a regular file");
  }
  return file;
}

int FileDescriptor::release() noexcept { return std::exchange(fd_, -1); }

void FileDescriptor::close(const std::string& path) {
  if (fd_ < 0) return;
  // The descriptor is gone whatever close() returns; retrying could close somebody else's.
  if (::close(release()) != 0 && errno != EINTR) throw system_error(errno, "close", path);
}

void read_at(int fd, std::int64_t offset, std::span<std::byte> out, const std::string& path) {
  while (!out.empty()) {
    const ssize_t count = ::pread(fd, out.data(), out.size(), offset);
    if (count < 0) {
      if (errno == EINTR) continue;
      throw system_error(errno, "read", path);
    }
    if (count == 0) throw ends_early(offset, out.size(), path);
    offset += count;
    out = out.subspan(static_cast<std::size_t>(count));
  }
}

ReadTime read_at_timed(int fd, std::int64_t offset, std::span<std::byte> out,
                       const std::string& path) {
  ReadTime time;
  Stopwatch watch;
  while (!out.empty()) {
    const iovec target{.iov_base = out.data(), .iov_len = out.size()};
    ssize_t count = ::preadv2(fd, &target, 1, offset, RWF_NOWAIT);
    time.copied_seconds += watch.lap();
    if (count <= 0) {
      // Not in the cache (EAGAIN), or nobody knows. An error of the storage itself, or the end of
      // the file, comes again.
      count = ::pread(fd, out.data(), out.size(), offset);
      const int error = errno;
      time.waited_seconds += watch.lap();
      if (count < 0) {
        if (error == EINTR) continue;
        throw system_error(error, "read", path);
      }
    }
    if (count == 0) throw ends_early(offset, out.size(), path);
    offset += count;
    out = out.subspan(static_cast<std::size_t>(count));
  }
  return time;
}

void write_at(int fd, std::int64_t offset, std::span<const std::byte> bytes,
              const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(fd, bytes.data(), bytes.size(), offset);
    if (count < 0) {
      if (errno == EINTR) continue;
      throw system_error(errno, "write", path);
    }
    if (count == 0) throw system_error(EIO, "write", path);
    offset += count;
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

void resize_file(int fd, std::int64_t bytes, const std::string& path) {
  int status = 0;
  do {
    status = ::ftruncate(fd, bytes);
  } while (status != 0 && errno == EINTR);
  if (status != 0) throw system_error(errno, "set the length of", path);
}

}  // namespace chunkio::base
