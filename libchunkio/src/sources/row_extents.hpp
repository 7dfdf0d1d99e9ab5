/// Where the rows of an unfiltered array of whole rows lie: in one run, or chunk by chunk.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <chunkio/tensor.hpp>

#include "base/chunk_source.hpp"
#include "base/element_fill.hpp"
#include "base/stopwatch.hpp"
#include "h5/stored_array.hpp"

namespace chunkio::sources {

/// One past the last of the rows that are read in one go with rows[begin], none of them behind a
/// larger gap.
/// \param rows  ascending, of `row_bytes` each, one behind the other in the file.
[[nodiscard]] inline std::size_t end_of_close_rows(std::span<const RowTarget> rows,
                                                   std::size_t begin, std::int64_t row_bytes) {
  std::size_t end = begin + 1;
  while (end < rows.size() &&
         (std::int64_t{rows[end].row} - rows[end - 1].row - 1) * row_bytes <= kMaxGapBytes) {
    ++end;
  }
  return end;
}

/// Whether for_each_extent can serve the array.
[[nodiscard]] inline bool has_row_extents(const h5::StoredArray& array) {
  return array.needs_libhdf5.empty() && array.filters.empty() && array.whole_rows();
}

/// File offset of row 0 of the dataset if all rows were stored as the chunk of `row` is; absent if
/// that chunk has no storage. \pre has_row_extents(array). \throws Error corrupt_data, hdf5_failed.
[[nodiscard]] inline std::optional<std::int64_t> row_origin(const h5::StoredArray& array,
                                                            std::int64_t row) {
  if (array.linear_offset) return array.linear_offset;
  const std::int64_t chunk_rows = array.stored.chunk_shape[0];
  std::array<std::int64_t, Shape::kMaxRank> coord{row / chunk_rows};
  const h5::ChunkEntry entry = array.index->find(std::span(coord).first(array.stored.shape.rank()));
  if (!entry.allocated()) return std::nullopt;
  return entry.file_offset - coord[0] * chunk_rows * array.row_bytes;
}

/// One past the last row of the dataset that lies in the same stored run as `row`.
[[nodiscard]] inline std::int64_t end_of_run(const h5::StoredArray& array, std::int64_t row) {
  if (array.linear_offset) return array.stored.shape[0];
  const std::int64_t chunk_rows = array.stored.chunk_shape[0];
  return (row / chunk_rows + 1) * chunk_rows;
}

/// Calls visit(part, origin) for the parts of `rows` (ascending) that lie in one stored run each:
/// row `row` of `group` is at file offset origin + row * row_bytes. Rows of chunks without storage
/// get the fill value here. What that and finding chunks took is added to `cost`.
/// \pre has_row_extents(array). \throws Error corrupt_data, hdf5_failed, and what `visit` throws.
template <class Visit>
void for_each_extent(const h5::StoredArray& array, const RowGroup& group,
                     std::span<const RowTarget> rows, ReadCost& cost, Visit visit) {
  for (std::size_t begin = 0; begin < rows.size();) {
    const std::int64_t first = group.first_row + rows[begin].row;
    const std::int64_t run_end = end_of_run(array, first) - group.first_row;
    std::size_t end = begin + 1;
    while (end < rows.size() && rows[end].row < run_end) ++end;
    const auto part = rows.subspan(begin, end - begin);
    begin = end;

    base::Stopwatch watch;
    const std::optional<std::int64_t> origin = row_origin(array, first);
    cost.read_seconds += watch.lap();
    if (origin) {
      visit(part, *origin + group.first_row * array.row_bytes);
      continue;
    }
    for (const RowTarget& row : part) {
      base::fill_elements({row.target, static_cast<std::size_t>(array.row_bytes)},
                          array.fill_value);
    }
    cost.copy_seconds += watch.lap();
  }
}

}  // namespace chunkio::sources
