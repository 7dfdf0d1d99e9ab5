#include "chunkbench/pruning.hpp"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "chunkbench/results.hpp"

namespace {

using bench::Cell;
using bench::CellStatus;
using bench::pruned_in;
using bench::Rates;
using Indices = std::vector<std::size_t>;

TEST(Pruning, LeaderHasTheHighestMedianNotTheHighestRound) {
  const std::vector<Rates> map = {{90, 90, 300}, {100, 100, 100}, {}};
  EXPECT_EQ(bench::leader_of(map), 1U);
}

TEST(Pruning, NothingIsCertainAfterOneRound) {
  const std::vector<Rates> map = {{100}, {1}};
  EXPECT_EQ(pruned_in(map), Indices{});
}

TEST(Pruning, TwoRoundsMustLieBelowHalfOfTheLeadersWorst) {
  const std::vector<Rates> map = {{100, 120}, {49, 30}, {51, 30}, {1, 99}};
  EXPECT_EQ(pruned_in(map), Indices{1});
}

TEST(Pruning, ThreeRoundsMustLieATenthBelowTheLeadersWorst) {
  const std::vector<Rates> map = {{100, 120, 110}, {89, 80, 85}, {91, 10, 10}, {89.9, 89, 50}};
  EXPECT_EQ(pruned_in(map), (Indices{1, 3}));
}

TEST(Pruning, ABadRoundOfTheLeaderKeepsItsCompetitorsIn) {
  const std::vector<Rates> map = {{100, 100, 50}, {80, 80, 80}, {44, 44, 44}};
  EXPECT_EQ(pruned_in(map), Indices{2});
}

TEST(Pruning, TheCellWithFewerRoundsCounts) {
  // Three rounds of the leader, two of the other: what two rounds make certain.
  const std::vector<Rates> map = {{100, 100, 100}, {60, 60}, {40, 40}};
  EXPECT_EQ(pruned_in(map), Indices{2});
}

TEST(Pruning, EqualCellsStayAndSoDoesALeaderAlone) {
  const std::vector<Rates> equal = {{100, 100, 100}, {100, 100, 100}};
  EXPECT_EQ(pruned_in(equal), Indices{});
  const std::vector<Rates> alone = {{100, 1, 50}};
  EXPECT_EQ(pruned_in(alone), Indices{});
  EXPECT_EQ(pruned_in(std::vector<Rates>()), Indices{});
  EXPECT_EQ(pruned_in(std::vector<Rates>(3)), Indices{});
}

Cell cell(const std::string& order, const std::string& source, std::int64_t threads,
          const std::vector<std::int64_t>& images) {
  Cell made = {.chunk_bytes = 1 << 20,
               .chunk_samples = 10,
               .cache_bytes = 1 << 24,
               .order = order,
               .source = source,
               .threads = threads,
               .status = CellStatus::measuring};
  for (const std::int64_t count : images) made.rounds.push_back({.images = count, .seconds = 0.5});
  return made;
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
