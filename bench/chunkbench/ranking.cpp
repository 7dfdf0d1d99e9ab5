#include "chunkbench/ranking.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "chunkbench/number_format.hpp"

namespace bench {
namespace {

std::size_t rank_of(std::string_view name, std::span<const std::string_view> names) {
  return static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

/// How many chunks a batch can be drawn from.
double chunks_mixed(const Cell& cell) {
  if (cell.order == "random") return std::numeric_limits<double>::infinity();
  // The cache of libhdf5 changes no order.
  if (cell.source == "h5dread" || cell.chunk_bytes < 1) return 0;
  return static_cast<double>(cell.cache_bytes) / static_cast<double>(cell.chunk_bytes);
}

}  // namespace

bool has_speed(const Cell& cell) {
  return (cell.status == CellStatus::measured || cell.status == CellStatus::pruned) &&
         cell.images_per_second.has_value();
}

double median_speed(const Cell& cell) { return cell.images_per_second->spread.median; }

bool may_be_as_fast(const Cell& cell, const Cell& fastest) {
  return cell.images_per_second->spread.highest >= fastest.images_per_second->spread.lowest;
}

std::vector<CellGroup> group_cells(const Results& results) {
  std::map<std::tuple<std::size_t, std::size_t, std::int64_t>, CellGroup> groups;
  const std::vector<Cell>& cells = results.cells;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const Cell& cell = cells[i];
    CellGroup& group =
        groups[{rank_of(cell.order, kOrders), rank_of(cell.source, kSources), cell.threads}];
    group.order = cell.order;
    group.source = cell.source;
    group.threads = cell.threads;
    group.cells.push_back(i);
    if (has_speed(cell) && (!group.best || median_speed(cell) > median_speed(cells[*group.best]))) {
      group.best = i;
    }
  }
  std::vector<CellGroup> sorted;
  for (auto& [key, group] : groups) sorted.push_back(std::move(group));
  return sorted;
}

const Cell* best_cell(const Results& results) {
  const auto mixes = [](const Cell& cell) { return has_speed(cell) && cell.order != "sequential"; };
  const Cell* const quickest = fastest(results.cells, mixes);
  if (quickest == nullptr) return fastest(results.cells, has_speed);
  const Cell* best = quickest;
  for (const Cell& cell : results.cells) {
    if (!mixes(cell) || !may_be_as_fast(cell, *quickest)) continue;
    if (std::pair(chunks_mixed(cell), median_speed(cell)) >
        std::pair(chunks_mixed(*best), median_speed(*best))) {
      best = &cell;
    }
  }
  return best;
}

std::optional<Bound> bound_of(const Results& results) {
  std::optional<Bound> bound;
  const bool limited = results.options.limit && results.options.limit->bytes_per_second;
  const std::string_view wanted = results.options.cold || limited ? "storage" : "memory";
  for (const Ceiling& ceiling : results.ceilings) {
    const double bytes_per_second = ceiling.bytes_per_second.spread.median;
    if (!ceiling.name.starts_with(wanted) || bytes_per_second <= 0) continue;
    if (!bound || bytes_per_second > bound->bytes_per_second) {
      bound = {wanted == "storage" ? "the disk" : "a copy in memory", bytes_per_second};
    }
  }
  if (limited) {
    const double bytes_per_second = *results.options.limit->bytes_per_second;
    if (bytes_per_second > 0 && (!bound || bytes_per_second < bound->bytes_per_second)) {
      const std::string& profile = results.options.limit->profile;
      bound = {profile == "custom" ? "the limit" : "profile " + profile, bytes_per_second};
    }
  }
  return bound;
}

std::optional<double> share_of_bound(const Cell& cell, const std::optional<Bound>& bound) {
  if (!bound || !cell.bytes_per_second) return std::nullopt;
  return cell.bytes_per_second->spread.median / bound->bytes_per_second;
}

std::optional<double> stall_share(const Cell& cell) {
  double seconds = 0;
  double stall_seconds = 0;
  for (const Round& round : cell.rounds) {
    seconds += round.seconds;
    stall_seconds += round.stall_seconds;
  }
  if (seconds <= 0) return std::nullopt;
  return stall_seconds / seconds;
}

std::string order_text(const std::string& order) {
  return order == "chunk_shuffled" ? "chunk-shuffled" : order;
}

std::string cache_word(const std::string& source) {
  return source == "h5dread" ? "chunk cache" : "window";
}

std::string reader_text(const std::string& source, std::int64_t threads) {
  return source + ", " + plural(threads, "thread");
}

std::string sizes_text(const Cell& cell) {
  return size_text(cell.chunk_bytes) + " chunks, " + size_text(cell.cache_bytes) + " " +
         cache_word(cell.source);
}

}  // namespace bench
