/// A file of this machine, read through the page cache.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <chunkio/byte_source.hpp>

#include "base/positional_io.hpp"

namespace chunkio::io {

class LocalFile final : public ByteSource {
 public:
  /// Opens an existing regular file.
  /// \throws Error not_found, io_failed; unsupported if it is not a regular file.
  explicit LocalFile(const std::string& path);
  LocalFile(base::FileDescriptor file, std::string path);
  /// A file that somebody else has open. \param fd  outlives this.
  /// \throws Error io_failed.
  LocalFile(int fd, std::string path);

  [[nodiscard]] int fd() const noexcept { return fd_; }
  /// Whether the kernel shows which of its pages are in memory: io::shows_pages().
  [[nodiscard]] bool shows_pages() const noexcept { return shows_pages_; }
  [[nodiscard]] const std::string& name() const noexcept override { return path_; }
  [[nodiscard]] std::int64_t size() const noexcept override { return size_; }
  /// Of the size and the time of modification. Not of the time of change, which also moves when the
  /// file is renamed, or unlinked because a new version took its name: what was opened stays as it
  /// is then.
  [[nodiscard]] std::uint64_t version() const override;
  /// How the file differs from what was opened, as a clause. \throws Error io_failed.
  [[nodiscard]] std::string change() const;
  /// Takes what lies in the page cache first, and tells it from what is waited for. Does not ask
  /// `stop`.
  ReadTime read_at(std::int64_t offset, std::span<std::byte> out,
                   const std::stop_token& stop) const override;
  /// Asks the kernel for them, all at once: what suits small ranges in many places.
  [[nodiscard]] std::unique_ptr<const ByteSource> prefetch(
      std::span<const ByteRange> ranges) const noexcept override;

 private:
  base::FileDescriptor own_;
  int fd_;
  std::string path_;
  std::int64_t size_ = 0;
  bool shows_pages_ = false;
  std::int64_t modified_ = 0;  // nanoseconds since 1970, when it was opened
};

/// `source` as a local file; null if it is none.
[[nodiscard]] const LocalFile* as_local_file(const ByteSource& source) noexcept;
[[nodiscard]] std::shared_ptr<const LocalFile> as_local_file(
    const std::shared_ptr<const ByteSource>& source) noexcept;

/// Whether a file system's pages stay valid under a mapping. Those of shared file systems can
/// vanish, so a type (statfs(2), f_type) that is not known to be local counts as shared.
[[nodiscard]] bool is_local_file_system(std::int64_t type) noexcept;
/// Whether `source` is a local file on such a file system.
[[nodiscard]] bool on_local_file_system(const ByteSource& source) noexcept;

}  // namespace chunkio::io
