/// A source file open for reading, and the stamp that tells whether it changed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace cli {

/// Size and time of a file: they show whether it changed.
struct FileStamp {
  std::int64_t size = -1;  ///< Bytes; -1: unknown.
  std::int64_t mtime_ns = 0;

  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

/// The stamp of what `path` leads to; with size -1 if that does not exist. Blocks on I/O.
[[nodiscard]] FileStamp file_stamp(const std::string& path) noexcept;

/// Everything blocks on I/O, but never on a pipe or device. const functions are thread-safe.
class SourceFile {
 public:
  /// \param path  must outlive this.
  /// \throws Error not_found, io_failed, out_of_resources.
  explicit SourceFile(const std::string& path);
  SourceFile(const SourceFile&) = delete;
  SourceFile& operator=(const SourceFile&) = delete;
  ~SourceFile();

  /// \throws Error unsupported: no regular file; io_failed.
  [[nodiscard]] FileStamp stamp() const;
  /// \throws Error io_failed if the file is not what it was when it was listed; as stamp().
  void check_unchanged(const FileStamp& listed) const;
  /// Fills `bytes` from `offset` on.
  /// \throws Error io_failed, also if the file ends before.
  void read_at(std::int64_t offset, std::span<std::uint8_t> bytes) const;

 private:
  const std::string* path_;
  int fd_;
};

}  // namespace cli
