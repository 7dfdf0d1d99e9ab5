/// Which bytes of a file hold given rows of an array, filtered or not, whether chunks cut rows or
/// not.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include <chunkio/byte_source.hpp>
#include <chunkio/epoch_order.hpp>
#include <chunkio/error.hpp>
#include <chunkio/tensor.hpp>

#include "base/chunk_source.hpp"
#include "h5/chunk_index.hpp"
#include "h5/stored_array.hpp"
#include "sources/row_extents.hpp"

namespace chunkio::sources {

/// Calls visit(offset, bytes) for the ranges of the file that hold rows `wanted` of the dataset:
/// whole chunks where they are filtered. Small chunks that lie one behind the other, with no larger
/// gap than is read anyway, are one range. None where nothing is stored, or where libhdf5 alone can
/// tell. A chunk that cannot be found is left out: reading it meets the error again, and reports
/// it.
template <class Visit>
void for_each_stored_range(const h5::StoredArray& array, const RowRange& wanted, Visit visit) {
  if (!array.needs_libhdf5.empty()) return;
  if (array.linear_offset) {
    visit(*array.linear_offset + wanted.begin * array.row_bytes,
          (wanted.end - wanted.begin) * array.row_bytes);
    return;
  }
  const bool small = has_small_chunks(array);
  ByteRange joined{};
  const auto add = [&](std::int64_t begin, std::int64_t end) {
    if (small && begin >= joined.end && begin - joined.end <= kMaxGapBytes && joined.end > 0) {
      joined.end = end;
      return;
    }
    if (joined.end > joined.begin) visit(joined.begin, joined.end - joined.begin);
    joined = {begin, end};
  };
  const std::int64_t chunk_rows = array.stored.chunk_shape[0];
  const std::int64_t row_bytes = array.chunk_bytes / chunk_rows;
  bool readable = true;  // the index
  for (std::int64_t chunk = wanted.begin / chunk_rows; chunk * chunk_rows < wanted.end && readable;
       ++chunk) {
    const std::int64_t chunk_row = chunk * chunk_rows;
    h5::for_each_column(*array.index, chunk, [&](std::span<const std::int64_t> position) {
      if (!readable) return;
      try {
        const h5::ChunkEntry entry = array.index->find(position);
        if (!entry.allocated()) return;
        if (!array.stored_raw(position, entry.filter_mask)) {
          add(entry.file_offset, entry.file_offset + entry.stored_bytes);
          return;
        }
        const std::int64_t begin = std::max(wanted.begin - chunk_row, std::int64_t{0});
        const std::int64_t end = std::min(wanted.end - chunk_row, chunk_rows);
        add(entry.file_offset + begin * row_bytes, entry.file_offset + end * row_bytes);
      } catch (const Error& error) {
        readable = error.code() != ErrorCode::io_failed;
      }
    });
  }
  if (joined.end > joined.begin) visit(joined.begin, joined.end - joined.begin);
}

/// Has those ranges prefetched. \returns as ByteSource::prefetch().
[[nodiscard]] inline std::unique_ptr<const ByteSource> prefetch_rows(
    const ByteSource& bytes, const h5::StoredArray& array, const RowRange& wanted) noexcept try {
  std::vector<ByteRange> ranges;
  for_each_stored_range(array, wanted, [&](std::int64_t offset, std::int64_t size) {
    ranges.push_back({offset, offset + size});
  });
  return bytes.prefetch(ranges);
} catch (const std::bad_alloc&) {
  return nullptr;
}

}  // namespace chunkio::sources
