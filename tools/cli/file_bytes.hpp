/// Reads a whole file into memory that the next file uses again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "cli/checked_file.hpp"

namespace cli {

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

}  // namespace cli
