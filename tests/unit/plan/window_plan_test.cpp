#include "plan/window_plan.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

namespace chunkio {
namespace {

using namespace plan;

using Rows = std::vector<std::int64_t>;

WindowPlan plan_of(const EpochOrder& order, std::int64_t lane, std::int64_t window) {
  WindowPlan plan;
  plan_window(order, lane, window, plan);
  return plan;
}

Rows groups_read(const WindowPlan& plan) {
  Rows groups;
  for (const GroupRead& read : plan.reads) groups.push_back(read.group);
  return groups;
}

TEST(WindowPlan, SequentialWindowsAreRowGroups) {
  const EpochOrder order(RowGroups(4, 10), {.mode = OrderMode::sequential, .batch_size = 3}, 0);
  ASSERT_EQ(num_windows(order, 0), 3);
  const WindowPlan plan = plan_of(order, 0, 2);
  EXPECT_EQ(plan.first_index, 8);
  EXPECT_EQ(plan.end_index, 10);
  EXPECT_EQ(groups_read(plan), (Rows{2}));
  ASSERT_EQ(plan.rows.size(), 2U);
  EXPECT_EQ(plan.rows[1].row, 1U);
  EXPECT_EQ(plan.rows[1].index, 1U);
  EXPECT_EQ(max_window_samples(order, 1), 4 + 1);  // one more for padding
  EXPECT_EQ(max_window_samples(order, 100), 10);
}

TEST(WindowPlan, ShuffledWindowsHoldWSlots) {
  const EpochOrder order(RowGroups(5, 101), {.seed = 2, .batch_size = 8, .window_groups = 4}, 1);
  ASSERT_EQ(num_windows(order, 0), 6);
  Rows groups;
  for (std::int64_t w = 0; w < 6; ++w) {
    const WindowPlan plan = plan_of(order, 0, w);
    EXPECT_EQ(plan.reads.size(), w < 5 ? 4U : 1U);
    for (const GroupRead& read : plan.reads) {
      groups.push_back(read.group);
      EXPECT_EQ(read.count, order.groups().length(read.group));
    }
  }
  std::sort(groups.begin(), groups.end());
  EXPECT_EQ(std::adjacent_find(groups.begin(), groups.end()), groups.end());
  EXPECT_EQ(groups.size(), 21U);
}

TEST(WindowPlan, PaddingIsAReadOfItsOwnInTheLastWindow) {
  // Lanes of 5 and 6: lane 0 is padded.
  const OrderOptions options{.seed = 8, .batch_size = 3, .window_groups = 1, .world_size = 2};
  const EpochOrder order(RowGroups(2, 11), options, 0);
  EXPECT_EQ(lane_delivered(order, 0), 6);
  const std::int64_t last = num_windows(order, 0) - 1;
  ASSERT_GT(last, 0);
  const WindowPlan plan = plan_of(order, 0, last);
  EXPECT_EQ(plan.end_index, 6);
  ASSERT_EQ(plan.reads.size(), 2U);
  const GroupRead read = plan.reads.back();
  ASSERT_EQ(read.count, 1U);
  const PlannedRow padded = plan.rows[read.first];
  EXPECT_EQ(plan.first_index + padded.index, 5);
  EXPECT_EQ(order.groups().row(read.group, padded.row), order.batch(0).front());
}

TEST(WindowPlan, RandomWindowsAreBatchesAndReadAGroupOnce) {
  const EpochOrder order(RowGroups(16, 100),
                         {.mode = OrderMode::random, .seed = 1, .batch_size = 40}, 0);
  ASSERT_EQ(num_windows(order, 0), 3);
  for (std::int64_t w = 0; w < 3; ++w) {
    const WindowPlan plan = plan_of(order, 0, w);
    const Rows groups = groups_read(plan);
    EXPECT_TRUE(std::is_sorted(groups.begin(), groups.end(), std::less_equal<>()));
    EXPECT_EQ(std::ssize(plan.rows), w < 2 ? 40 : 20);
  }
  EXPECT_EQ(max_window_samples(order, 2), 80);
  EXPECT_EQ(max_window_samples(order, 3), 100);
}

TEST(WindowPlan, ALaneThatDeliversNothingHasOneEmptyWindow) {
  const EpochOrder order(
      RowGroups(16, 30),
      {.mode = OrderMode::random, .seed = 1, .batch_size = 40, .drop_last = true}, 0);
  ASSERT_EQ(num_windows(order, 0), 1);
  EXPECT_EQ(window_extent(order, 0, 0).end_index, 0);
  EXPECT_TRUE(plan_of(order, 0, 0).rows.empty());
  EXPECT_EQ(max_window_samples(order, 1), 0);
}

TEST(WindowPlan, APlanIsReusedWhateverItHeld) {
  const EpochOrder order(RowGroups(10, 1000), {.seed = 6, .batch_size = 32, .window_groups = 9}, 0);
  WindowPlan reused;
  for (const std::int64_t window : {3, 11, 0}) {
    plan_window(order, 0, window, reused);
    const WindowPlan fresh = plan_of(order, 0, window);
    ASSERT_EQ(reused.rows.size(), fresh.rows.size());
    EXPECT_TRUE(std::equal(fresh.rows.begin(), fresh.rows.end(), reused.rows.begin(),
                           [](const PlannedRow& a, const PlannedRow& b) {
                             return a.row == b.row && a.index == b.index;
                           }));
    EXPECT_EQ(groups_read(reused), groups_read(fresh));
  }
}

TEST(WindowPlan, AWindowOfTenBillionSamplesIsPlannedAlone) {
  const EpochOrder order(
      RowGroups(36, 10'000'000'000),
      {.seed = 1, .batch_size = 256, .window_groups = 64, .rank = 0, .world_size = 8}, 0);
  const std::int64_t window = num_windows(order, 7) / 2;
  const WindowPlan plan = plan_of(order, 7, window);
  EXPECT_EQ(plan.reads.size(), 64U);
  EXPECT_EQ(plan.rows.size(), 64U * 36U);
  EXPECT_EQ(lane_batch(order), 256);
}

TEST(WindowPlan, ASelectionNeedsNoMoreThanItsLongestGroups) {
  // One row in each group of 10: windows of 4 groups hold 4 samples.
  Rows tens(100);
  for (std::size_t i = 0; i < tens.size(); ++i) tens[i] = static_cast<std::int64_t>(10 * i + 3);
  const EpochOrder order(RowGroups(10, 1000, RowSelection::of(tens)),
                         {.batch_size = 2, .window_groups = 4}, 0);
  EXPECT_EQ(max_window_samples(order, 1), 4 + 1);  // one more for padding
  EXPECT_EQ(max_window_samples(order, 5), 20 + 1);
  EXPECT_EQ(max_window_samples(order, 50), 100);
}

}  // namespace
}  // namespace chunkio
