/// Where the rows of an unfiltered array of whole rows lie: in one run, or chunk by chunk.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

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

/// Why for_each_extent() cannot serve the array, as a clause; empty if it can.
[[nodiscard]] inline std::string why_no_row_extents(const h5::StoredArray& array) {
  if (!array.needs_libhdf5.empty()) return array.needs_libhdf5;
  if (!array.filters.empty()) return array.filters.back().name + " filter";
  if (!array.whole_rows()) return "chunks cut samples";
  return {};
}

/// File offset of row 0 of the dataset if all rows were stored as the chunk of `row` is; absent if
/// that chunk has no storage. \pre why_no_row_extents(array) is empty. \throws Error corrupt_data,
/// hdf5_failed.
[[nodiscard]] inline std::optional<std::int64_t> row_origin(const h5::StoredArray& array,
                                                            std::int64_t row) {
  if (array.linear_offset) return array.linear_offset;
  const std::int64_t chunk_rows = array.stored.chunk_shape[0];
  std::array<std::int64_t, Shape::kMaxRank> coord{row / chunk_rows};
  const h5::ChunkEntry entry = array.index->find(std::span(coord).first(array.stored.shape.rank()));
  if (!entry.allocated()) return std::nullopt;
  return entry.file_offset - coord[0] * chunk_rows * array.row_bytes;
}

/// Chunks of at most this many bytes, in memory, are read together with their neighbours.
inline constexpr std::int64_t kReadTogetherBytes = std::int64_t{256} << 10;
[[nodiscard]] inline bool has_small_chunks(const h5::StoredArray& array) noexcept {
  return array.stored.chunked && array.chunk_bytes <= kReadTogetherBytes;
}

/// One past the last row of the dataset that lies in the same stored run as `row`.
[[nodiscard]] inline std::int64_t end_of_run(const h5::StoredArray& array, std::int64_t row) {
  if (array.linear_offset) return array.stored.shape[0];
  const std::int64_t chunk_rows = array.stored.chunk_shape[0];
  return (row / chunk_rows + 1) * chunk_rows;
}

/// Calls visit(part, origin) for the parts of `rows` (ascending) that lie in one stored run each:
/// row `row` of `group` is at file offset origin + row * row_bytes. Small chunks that lie one
/// behind the other are one run; if it cannot be read, each of them is tried alone. Rows of chunks
/// without storage get the fill value here. What that and finding chunks took is added to `cost`.
/// \pre why_no_row_extents(array) is empty.
/// \throws Error corrupt_data, hdf5_failed, and what `visit` throws; of some of several chunks
///         DamagedRows, after all others were visited.
template <class Visit>
void for_each_extent(const h5::StoredArray& array, const RowGroup& group,
                     std::span<const RowTarget> rows, ReadCost& cost, Visit visit) {
  const std::int64_t run_rows =
      array.linear_offset ? array.stored.shape[0] : array.stored.chunk_shape[0];
  const bool small = !array.linear_offset && has_small_chunks(array);
  Damage damage(group, run_rows);
  const auto dataset_row = [&](std::size_t i) { return group.first_row + rows[i].row; };
  // One past the last of the rows that lie in the same chunk as rows[begin].
  const auto end_of_chunk = [&](std::size_t begin) {
    const std::int64_t end_row = end_of_run(array, dataset_row(begin));
    std::size_t end = begin + 1;
    while (end < rows.size() && dataset_row(end) < end_row) ++end;
    return end;
  };
  const auto visit_part = [&](std::size_t begin, std::size_t end,
                              const std::optional<std::int64_t>& origin) {
    const auto part = rows.subspan(begin, end - begin);
    if (origin) {
      visit(part, *origin + group.first_row * array.row_bytes);
      return;
    }
    base::Stopwatch watch;
    for (const RowTarget& row : part) {
      base::fill_elements({row.target, static_cast<std::size_t>(array.row_bytes)},
                          array.fill_value);
    }
    cost.copy_seconds += watch.lap();
  };
  // The run that was found so far: rows [begin, end).
  std::size_t begin = 0;
  std::optional<std::int64_t> run_origin;
  const auto visit_run = [&](std::size_t end) {
    if (begin == end) return;
    try {
      visit_part(begin, end, run_origin);
    } catch (const Error& error) {
      if (end_of_chunk(begin) == end) {
        damage.add(dataset_row(begin), error);
        return;
      }
      if (!concerns_stored_bytes(error.code())) throw;
      for (std::size_t first = begin; first < end;) {
        const std::size_t last = std::min(end_of_chunk(first), end);
        try {
          visit_part(first, last, run_origin);
        } catch (const Error& one) {
          damage.add(dataset_row(first), one);
        }
        first = last;
      }
    }
  };
  for (std::size_t at = 0; at < rows.size();) {
    const std::size_t end = end_of_chunk(at);
    base::Stopwatch watch;
    try {
      const std::optional<std::int64_t> origin = row_origin(array, dataset_row(at));
      cost.read_seconds += watch.lap();
      if (!small || origin != run_origin) {
        visit_run(at);
        begin = at;
        run_origin = origin;
      }
    } catch (const Error& error) {
      if (error.code() == ErrorCode::io_failed) throw;  // the index cannot be read
      visit_run(at);
      damage.add(dataset_row(at), error);
      begin = end;
    }
    at = end;
  }
  visit_run(rows.size());
  damage.raise(cost);
}

}  // namespace chunkio::sources
