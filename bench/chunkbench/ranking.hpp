/// Which cells of a sweep are compared with each other, and which is best.
///
/// Pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "chunkbench/results.hpp"

namespace bench {

/// Cells that differ in chunk and cache size only.
struct CellGroup {
  std::string order = {};
  std::string source = {};
  std::int64_t threads = 1;
  std::vector<std::size_t> cells = {};   ///< Indices into Results::cells, in their order.
  std::optional<std::size_t> best = {};  ///< Absent: nothing was measured.
};

/// In the order of orders (chunk_shuffled, random, sequential), then sources, then threads.
[[nodiscard]] std::vector<CellGroup> group_cells(const Results& results);

/// Whether it is known how fast the cell is: measured or pruned.
[[nodiscard]] bool has_speed(const Cell& cell);
/// Images/s. \pre the cell has them.
[[nodiscard]] double median_speed(const Cell& cell);
/// Whether this run cannot tell that `cell` is slower. \pre both have a speed.
[[nodiscard]] bool may_be_as_fast(const Cell& cell, const Cell& fastest);

/// The first of the fastest cells with `wanted(cell)` that have trials; null: there is none.
template <class Wanted>
[[nodiscard]] const Cell* fastest(std::span<const Cell> cells, Wanted wanted) {
  const Cell* best = nullptr;
  for (const Cell& cell : cells) {
    if (!cell.images_per_second || !wanted(cell)) continue;
    if (best == nullptr || median_speed(cell) > median_speed(*best)) best = &cell;
  }
  return best;
}

/// The cell to train with: of those that this run cannot tell from the fastest, the one that mixes
/// the most chunks. Sequential ones count only if there are no others. Null: nothing was measured.
[[nodiscard]] const Cell* best_cell(const Results& results);

/// What bounds reading in this run: the disk as it was made slower on purpose; else storage for
/// cold runs and the memory for warm ones.
struct Bound {
  std::string name = {};  ///< "the disk", "profile hdd", "a copy in memory".
  double bytes_per_second = 0;
};
[[nodiscard]] std::optional<Bound> bound_of(const Results& results);

/// Bytes read each second / those of the bound. Absent: either is not known.
[[nodiscard]] std::optional<double> share_of_bound(const Cell& cell,
                                                   const std::optional<Bound>& bound);

/// Of all rounds. Absent: no rounds.
[[nodiscard]] std::optional<double> stall_share(const Cell& cell);

/// "chunk-shuffled", "random", "sequential".
[[nodiscard]] std::string order_text(const std::string& order);
/// "window", or "chunk cache" for `h5dread`.
[[nodiscard]] std::string cache_word(const std::string& source);
/// "mapped, 2 threads".
[[nodiscard]] std::string reader_text(const std::string& source, std::int64_t threads);
/// "4 MiB chunks, 256 MiB window".
[[nodiscard]] std::string sizes_text(const Cell& cell);

}  // namespace bench
