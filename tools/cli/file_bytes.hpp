/// Reads source files, and tells whether one changed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
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

/// What errno says of a file that is read: "cannot ACTION NAME: WHY". \param name  in quotes.
/// \throws Error not_found; out_of_resources (of this process); io_failed.
[[noreturn]] void throw_errno(const std::string& action, const std::string& name);

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

/// Holds the contents of the file read last and keeps its memory for the next one. Not thread-safe.
class FileBytes {
 public:
  /// Reads all of `path`. Blocks on I/O, but never on opening a pipe or device: only regular files
  /// are taken.
  /// \param expected  what the file was when it was listed.
  /// \throws Error not_found, io_failed (also: the file is not what was expected, or changes while
  ///         it is read), unsupported (not a regular file, or above 2 GiB), corrupt_data (empty),
  ///         out_of_resources (no memory, or too many open files).
  void read(const std::string& path, const std::optional<FileStamp>& expected = {});

  /// Valid until the next read(). Writable: decoders may rewrite it in place.
  [[nodiscard]] std::span<std::uint8_t> bytes() noexcept { return {data_.get(), size_}; }
  [[nodiscard]] std::span<const std::uint8_t> bytes() const noexcept {
    return {data_.get(), size_};
  }

 private:
  void make_room();

  std::unique_ptr<std::uint8_t[]> data_;
  std::size_t capacity_ = 0;
  std::size_t size_ = 0;
};

/// All of `path`, as text. Blocks on I/O. \throws Error as FileBytes::read().
[[nodiscard]] std::string read_text(const std::string& path);

/// Standard input to its end, or its first bytes if it is longer than `most`. Blocks on I/O.
/// \param what  is read, for messages.
/// \throws Error io_failed.
[[nodiscard]] std::string read_standard_input(const std::string& what, std::size_t most);

}  // namespace cli
