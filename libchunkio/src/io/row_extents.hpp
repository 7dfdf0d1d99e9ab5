/// Where the rows of an unfiltered array of whole rows lie: in one run, or chunk by chunk.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include <chunkio/tensor.hpp>

#include "base/chunk_source.hpp"
#include "h5/stored_array.hpp"

namespace chunkio::io {

/// Whether for_each_extent can serve the array.
[[nodiscard]] inline bool has_row_extents(const h5::StoredArray& array) {
  return array.needs_libhdf5.empty() && array.filters.empty() && array.whole_rows();
}

/// Calls visit(part, origin) for the parts of `rows` (ascending) that lie in one stored run each:
/// row `row` of `group` is at file offset *origin + row * row_bytes. No origin: the chunk has no
/// storage, its elements have the fill value. \pre has_row_extents(array). \throws Error
/// corrupt_data, hdf5_failed, and what `visit` throws.
template <class Visit>
void for_each_extent(const h5::StoredArray& array, const RowGroup& group,
                     std::span<const RowTarget> rows, Visit&& visit) {
  if (rows.empty()) return;
  if (array.linear_offset) {
    visit(rows, std::optional(*array.linear_offset + group.first_row * array.row_bytes));
    return;
  }
  const std::int64_t chunk_rows = array.stored.chunk_shape[0];
  std::array<std::int64_t, Shape::kMaxRank> coord{};
  for (std::size_t begin = 0; begin < rows.size();) {
    coord[0] = (group.first_row + rows[begin].row) / chunk_rows;
    const std::int64_t chunk_end = (coord[0] + 1) * chunk_rows - group.first_row;
    std::size_t end = begin + 1;
    while (end < rows.size() && rows[end].row < chunk_end) ++end;
    const h5::ChunkEntry entry =
        array.index->find(std::span(coord).first(array.stored.shape.rank()));
    std::optional<std::int64_t> origin;
    if (entry.allocated()) {
      origin = entry.file_offset + (group.first_row - coord[0] * chunk_rows) * array.row_bytes;
    }
    visit(rows.subspan(begin, end - begin), origin);
    begin = end;
  }
}

/// The same for all rows of `group`: calls visit(first, count, origin).
template <class Visit>
void for_each_extent(const h5::StoredArray& array, const RowGroup& group, Visit&& visit) {
  const std::int64_t chunk_rows = array.linear_offset ? 0 : array.stored.chunk_shape[0];
  for (std::int64_t row = 0; row < group.num_rows;) {
    const std::int64_t end =
        array.linear_offset
            ? group.num_rows
            : std::min(group.num_rows,
                       ((group.first_row + row) / chunk_rows + 1) * chunk_rows - group.first_row);
    const RowTarget first{.row = static_cast<std::uint32_t>(row), .target = nullptr};
    for_each_extent(array, group, std::span(&first, 1),
                    [&](std::span<const RowTarget>, const std::optional<std::int64_t>& origin) {
                      visit(row, end - row, origin);
                    });
    row = end;
  }
}

/// Fills a row with copies of one element.
inline void fill_row(std::byte* target, std::size_t row_bytes, std::span<const std::byte> element) {
  if (element.size() == 1) {
    std::memset(target, std::to_integer<int>(element[0]), row_bytes);
    return;
  }
  for (std::size_t at = 0; at < row_bytes; at += element.size()) {
    std::memcpy(target + at, element.data(), element.size());
  }
}

}  // namespace chunkio::io
