/// Files by descriptor: whole-length positional I/O, retried on EINTR and short counts.
///
/// Positional calls share no file position, so any number of threads may use one descriptor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <chunkio/byte_source.hpp>
#include <chunkio/error.hpp>

namespace chunkio::base {

/// An Error for a failed system call: "cannot ACTION PATH: strerror". ENOSPC, EDQUOT and EFBIG give
/// no_space, ENOENT not_found, ENOMEM out_of_resources, everything else io_failed. `hint`, if any,
/// is the hint and ends the line.
[[nodiscard]] Error system_error(int error_number, const std::string& action,
                                 const std::string& path, const std::string& hint = {});

/// Owns a file descriptor.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) noexcept : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  ~FileDescriptor();

  /// Opens an existing regular file read-only, close-on-exec.
  /// \throws Error not_found, io_failed; unsupported if it is not a regular file.
  static FileDescriptor open_for_reading(const std::string& path);

  [[nodiscard]] int get() const noexcept { return fd_; }
  [[nodiscard]] bool valid() const noexcept { return fd_ >= 0; }
  int release() noexcept;
  /// Closes now and reports failure, which a destructor cannot.
  /// \throws Error.
  void close(const std::string& path);

 private:
  int fd_ = -1;
};

/// Reads exactly out.size() bytes at `offset`.
/// \param path  for messages.
/// \throws Error io_failed (errno), corrupt_data (end of file comes first).
void read_at(int fd, std::int64_t offset, std::span<std::byte> out, const std::string& path);

/// The same as read_at, and tells what it cost: what lies in the page cache is taken first
/// (RWF_NOWAIT), and only the rest is waited for. Where the file system cannot tell the two apart,
/// all of it counts as waiting.
ReadTime read_at_timed(int fd, std::int64_t offset, std::span<std::byte> out,
                       const std::string& path);

/// Writes all of `bytes` at `offset`.
/// \throws Error io_failed, no_space.
void write_at(int fd, std::int64_t offset, std::span<const std::byte> bytes,
              const std::string& path);

/// Cuts a file off at `bytes`, or adds zeros up to there; gives back what was reserved beyond.
/// \throws Error io_failed, no_space.
void resize_file(int fd, std::int64_t bytes, const std::string& path);

}  // namespace chunkio::base
