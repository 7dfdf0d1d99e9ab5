/// A file for what does not fit memory, beside the output, gone whatever ends the process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace h5pack {

/// Thread-safe for ranges that do not overlap. Blocks on I/O.
class SpillFile {
 public:
  /// \param output  the file in whose folder it is. It has no name, or loses it at once.
  /// \throws Error io_failed, no_space.
  explicit SpillFile(const std::string& output);
  SpillFile(const SpillFile&) = delete;
  SpillFile& operator=(const SpillFile&) = delete;
  ~SpillFile();

  /// \throws Error no_space, io_failed.
  void write(std::int64_t offset, std::span<const std::byte> bytes) const;
  /// \throws Error io_failed, also if that was never written.
  void read(std::int64_t offset, std::span<std::byte> bytes) const;

 private:
  std::string folder_;
  int fd_ = -1;
};

}  // namespace h5pack
