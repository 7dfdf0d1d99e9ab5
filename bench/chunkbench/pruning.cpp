#include "chunkbench/pruning.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "chunkbench/ranking.hpp"
#include "chunkbench/results.hpp"
#include "cli/byte_size.hpp"

namespace bench {
namespace {

/// The share of the leader's lowest rate that a cell must stay below, after so many rounds of both;
/// 0: nothing is certain yet.
double certain_share(std::size_t rounds) {
  if (rounds >= 3) return 0.9;
  return rounds == 2 ? 0.5 : 0;
}

}  // namespace

void prune(std::span<Cell> cells) {
  std::map<std::tuple<std::string, std::string, std::int64_t>, std::vector<Cell*>> maps;
  for (Cell& cell : cells) {
    if (cell.images_per_second) maps[{cell.order, cell.source, cell.threads}].push_back(&cell);
  }
  for (const auto& [name, members] : maps) {
    const Cell& leader = **std::max_element(
        members.begin(), members.end(),
        [](const Cell* a, const Cell* b) { return median_speed(*a) < median_speed(*b); });
    for (Cell* const cell : members) {
      if (cell == &leader || cell->status != CellStatus::measuring) continue;
      const double share =
          cell->images_per_second->spread.highest / leader.images_per_second->spread.lowest;
      if (share >= certain_share(std::min(cell->rounds.size(), leader.rounds.size()))) continue;
      std::array<char, 32> percent{};
      std::snprintf(percent.data(), percent.size(), "%.0f", 100 * share);
      cell->status = CellStatus::pruned;
      cell->reason = std::string("its best round has ") + percent.data() +
                     " % of the worst of chunks of " + cli::format_bytes(leader.chunk_bytes) +
                     " with " + cli::format_bytes(leader.cache_bytes);
    }
  }
}

}  // namespace bench
