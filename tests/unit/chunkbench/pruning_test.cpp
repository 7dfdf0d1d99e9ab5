#include "chunkbench/pruning.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "chunkbench/cells.hpp"
#include "chunkbench/results.hpp"
#include "chunkbench/trial.hpp"

namespace {

using bench::Cell;
using bench::CellStatus;
using Indices = std::vector<std::size_t>;

/// A cell that took trials of a second with so many images.
Cell cell(const std::string& order, const std::string& source, std::int64_t threads,
          const std::vector<std::int64_t>& images) {
  Cell made = {.chunk_bytes = 1 << 20,
               .chunk_samples = 10,
               .cache_bytes = 1 << 24,
               .order = order,
               .source = source,
               .threads = threads};
  for (const std::int64_t count : images) {
    bench::add_trial({.round = {.images = count, .seconds = 1}}, made);
  }
  return made;
}

/// Which of these competitors are pruned.
Indices pruned_in(const std::vector<std::vector<std::int64_t>>& map) {
  std::vector<Cell> cells;
  for (const auto& images : map) cells.push_back(cell("random", "mapped", 1, images));
  bench::prune(cells);
  Indices pruned;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (cells[i].status == CellStatus::pruned) pruned.push_back(i);
  }
  return pruned;
}

TEST(Pruning, LeaderHasTheHighestMedianNotTheHighestRound) {
  EXPECT_EQ(pruned_in({{90, 90, 300}, {100, 100, 100}, {89, 89, 89}, {}}), Indices{2});
}

TEST(Pruning, NothingIsCertainAfterOneRound) { EXPECT_EQ(pruned_in({{100}, {1}}), Indices{}); }

TEST(Pruning, TwoRoundsMustLieBelowHalfOfTheLeadersWorst) {
  EXPECT_EQ(pruned_in({{100, 120}, {49, 30}, {51, 30}, {1, 99}}), Indices{1});
}

TEST(Pruning, ThreeRoundsMustLieATenthBelowTheLeadersWorst) {
  EXPECT_EQ(pruned_in({{1000, 1200, 1100}, {890, 800, 850}, {910, 10, 10}, {899, 890, 500}}),
            (Indices{1, 3}));
}

TEST(Pruning, ABadRoundOfTheLeaderKeepsItsCompetitorsIn) {
  EXPECT_EQ(pruned_in({{100, 100, 50}, {80, 80, 80}, {44, 44, 44}}), Indices{2});
}

TEST(Pruning, TheCellWithFewerRoundsCounts) {
  // Three rounds of the leader, two of the other: what two rounds make certain.
  EXPECT_EQ(pruned_in({{100, 100, 100}, {60, 60}, {40, 40}}), Indices{2});
}

TEST(Pruning, EqualCellsStayAndSoDoesALeaderAlone) {
  EXPECT_EQ(pruned_in({{100, 100, 100}, {100, 100, 100}}), Indices{});
  EXPECT_EQ(pruned_in({{100, 1, 50}}), Indices{});
  EXPECT_EQ(pruned_in({}), Indices{});
  EXPECT_EQ(pruned_in({{}, {}, {}}), Indices{});
}

TEST(Pruning, OnlyCellsOfTheSameMapCompete) {
  std::vector<Cell> cells = {
      cell("random", "mapped", 1, {100, 100, 100}), cell("random", "mapped", 1, {10, 10, 10}),
      cell("random", "mapped", 2, {10, 10, 10}), cell("random", "scatter", 1, {10, 10, 10}),
      cell("sequential", "mapped", 1, {10, 10, 10})};
  bench::prune(cells);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    EXPECT_EQ(cells[i].status, i == 1 ? CellStatus::pruned : CellStatus::measuring) << i;
  }
  EXPECT_NE(cells[1].reason.find("10 % of the worst"), std::string::npos) << cells[1].reason;
}

TEST(Pruning, WhatIsMeasuredOrFailedStaysSo) {
  std::vector<Cell> cells = {cell("random", "mapped", 1, {100, 100, 100}),
                             cell("random", "mapped", 1, {10, 10, 10}),
                             cell("random", "mapped", 1, {10, 10, 10})};
  cells[1].status = CellStatus::measured;
  cells[2].status = CellStatus::failed;
  bench::prune(cells);
  EXPECT_EQ(cells[1].status, CellStatus::measured);
  EXPECT_EQ(cells[2].status, CellStatus::failed);
}

}  // namespace
