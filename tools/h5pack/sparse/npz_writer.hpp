/// Writes an .npz file: arrays of NumPy (format 1.0), stored, in a zip archive with 64-bit sizes.
///
/// Nothing is held in memory: the size of an array is known before, its checksum is filled in
/// behind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cli/atomic_folder.hpp"

namespace h5pack {

/// Not thread-safe. Blocks on I/O. \throws chunkio::Error no_space, io_failed.
class NpzWriter {
 public:
  explicit NpzWriter(cli::AtomicFolder::File file) : file_(std::move(file)) {}

  /// Begins the next array, behind the last.
  /// \param descr  NumPy's name of the type: "<f4". \param shape  as Python has it: "(3,)".
  /// \param bytes  of all its elements.
  void begin(const std::string& name, const std::string& descr, const std::string& shape,
             std::int64_t bytes);
  /// Its next elements. \pre all of them together have the bytes that begin() was told.
  void add(std::span<const std::byte> elements);
  /// Ends the archive.
  void close();

 private:
  struct Member {
    std::string name = {};
    std::int64_t offset = 0;
    std::int64_t bytes = 0;
    std::uint32_t crc = 0;
  };
  void finish_member();

  cli::AtomicFolder::File file_;
  std::vector<Member> members_;
};

}  // namespace h5pack
