/// Byte ranges of one file, read into scratch memory through the page cache or round it.
///
/// Round it (O_DIRECT) for data far larger than memory: a training run then does not push
/// everything else out of the page cache. Such reads begin and end at blocks of the storage, so
/// they may bring more than was asked for, and the scratch memory must have room for that. Where
/// the file system refuses, reads go through the page cache as usual.
///
/// Immutable; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/chunk_source.hpp"
#include "h5/dataset_impl.hpp"
#include "io/direct_file.hpp"

namespace chunkio::io {

class RangeReader {
 public:
  /// \param direct_io  bypass the page cache if the file system allows it.
  RangeReader(std::shared_ptr<const Dataset::Impl> file, bool direct_io);
  /// \param fd  open for reading; must outlive this. \param path  for messages.
  RangeReader(int fd, std::string path, bool direct_io);

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// Reads bypass the page cache.
  [[nodiscard]] bool direct() const noexcept { return direct_.descriptor.valid(); }

  /// Bytes to read at a time where rows are copied out of scratch memory piece by piece. Through
  /// the page cache 512 KiB: half of a common second-level cache, in which the piece must still be
  /// when its rows are copied out. Round it 4 MiB, since a disk is faster then.
  [[nodiscard]] std::int64_t piece_bytes() const noexcept;

  /// Where a read of the byte at `offset` begins: there, or at the block of the storage round it.
  [[nodiscard]] std::int64_t block_begin(std::int64_t offset) const noexcept {
    return offset / direct_.block_bytes * direct_.block_bytes;
  }
  /// Scratch memory that reading `size` bytes anywhere in the file takes.
  [[nodiscard]] std::size_t scratch_bytes(std::int64_t size) const noexcept;

  /// Reads [offset, offset + size) and adds what that took to `cost`.
  /// \param scratch  at least scratch_bytes(size), aligned to a page.
  /// \returns those bytes, inside `scratch`.
  /// \throws Error io_failed (errno), corrupt_data (the file ends early).
  std::span<std::byte> read(std::int64_t offset, std::int64_t size, std::span<std::byte> scratch,
                            ReadCost& cost) const;

 private:
  std::shared_ptr<const Dataset::Impl> file_;  // keeps the descriptor open, if it is that of one
  int fd_;
  std::string path_;
  DirectFile direct_;  // without descriptor: reads go through the page cache
};

}  // namespace chunkio::io
