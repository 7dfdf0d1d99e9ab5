#include "chunkbench/pruning.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>

#include "chunkbench/results.hpp"
#include "cli/byte_size.hpp"
#include "harness/spread.hpp"

namespace bench {
namespace {

/// The share of the leader's lowest rate that a cell must stay below, after so many rounds of both;
/// 0: nothing is certain yet.
double certain_share(std::size_t rounds) {
  if (rounds >= 3) return 0.9;
  return rounds == 2 ? 0.5 : 0;
}

Rates rates_of(const Cell& cell) {
  Rates rates;
  for (const Round& round : cell.rounds) {
    rates.push_back(static_cast<double>(round.images) / round.seconds);
  }
  return rates;
}

}  // namespace

std::size_t leader_of(std::span<const Rates> map) {
  std::size_t leader = 0;
  double highest = -1;
  for (std::size_t i = 0; i < map.size(); ++i) {
    if (map[i].empty()) continue;
    const double median = spread_of(map[i]).median;
    if (median <= highest) continue;
    highest = median;
    leader = i;
  }
  return leader;
}

std::vector<std::size_t> pruned_in(std::span<const Rates> map) {
  std::vector<std::size_t> pruned;
  if (map.empty()) return pruned;
  const std::size_t leader = leader_of(map);
  const Rates& best = map[leader];
  if (best.empty()) return pruned;
  const double lowest = *std::min_element(best.begin(), best.end());
  for (std::size_t i = 0; i < map.size(); ++i) {
    if (i == leader || map[i].empty()) continue;
    const double highest = *std::max_element(map[i].begin(), map[i].end());
    if (highest < certain_share(std::min(map[i].size(), best.size())) * lowest) {
      pruned.push_back(i);
    }
  }
  return pruned;
}

std::string map_of(const Cell& cell) {
  return cell.order + ", " + cell.source + ", " + std::to_string(cell.threads) +
         (cell.threads == 1 ? " thread" : " threads");
}

void prune(std::span<Cell> cells) {
  std::map<std::string, std::vector<Cell*>> maps;
  for (Cell& cell : cells) maps[map_of(cell)].push_back(&cell);
  for (const auto& [name, members] : maps) {
    std::vector<Rates> map;
    for (const Cell* cell : members) map.push_back(rates_of(*cell));
    const std::vector<std::size_t> pruned = pruned_in(map);
    if (pruned.empty()) continue;
    const std::size_t best = leader_of(map);
    for (const std::size_t i : pruned) {
      if (members[i]->status != CellStatus::measuring) continue;
      const double share = *std::max_element(map[i].begin(), map[i].end()) /
                           *std::min_element(map[best].begin(), map[best].end());
      std::array<char, 32> percent{};
      std::snprintf(percent.data(), percent.size(), "%.0f", 100 * share);
      members[i]->status = CellStatus::pruned;
      members[i]->reason = std::string("its best round has ") + percent.data() +
                           " % of the worst of chunks of " +
                           cli::format_bytes(members[best]->chunk_bytes) + " with " +
                           cli::format_bytes(members[best]->cache_bytes);
    }
  }
}

}  // namespace bench
