/// Byte ranges of one source, read into scratch memory at the blocks that suit the source.
///
/// Reads of whole blocks may bring more than was asked for, and the scratch memory must have room
/// for that.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <stop_token>

#include <chunkio/byte_source.hpp>

#include "base/chunk_source.hpp"

namespace chunkio::io {

class RangeReader {
 public:
  /// \param source  outlives this. \param most_bytes  that piece_bytes() may be.
  explicit RangeReader(const ByteSource& source,
                       std::int64_t most_bytes = std::numeric_limits<std::int64_t>::max()) noexcept
      : source_(&source),
        block_bytes_(source.block_bytes()),
        piece_bytes_(std::min(source.request_bytes(), most_bytes)) {}

  [[nodiscard]] const ByteSource& source() const noexcept { return *source_; }
  /// Bytes to read at a time where many are wanted.
  [[nodiscard]] std::int64_t piece_bytes() const noexcept { return piece_bytes_; }
  /// Scratch memory that reading `size` bytes anywhere takes, aligned to a page.
  [[nodiscard]] std::size_t scratch_bytes(std::int64_t size) const noexcept;

  /// Reads `range` and adds what that took to `cost`.
  /// \param scratch  at least scratch_bytes() of the range, aligned to a page.
  /// \returns those bytes, inside `scratch`.
  /// \throws Error as ByteSource::read_at().
  std::span<std::byte> read(const ByteRange& range, std::span<std::byte> scratch,
                            const std::stop_token& stop, ReadCost& cost) const;

 private:
  const ByteSource* source_;
  std::int64_t block_bytes_;
  std::int64_t piece_bytes_;
};

}  // namespace chunkio::io
