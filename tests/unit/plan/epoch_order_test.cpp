#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chunkio/epoch_order.hpp>
#include <chunkio/error.hpp>
#include <chunkio/option_names.hpp>

#include "support/errors.hpp"
#include "support/golden_vectors.hpp"

namespace chunkio {
namespace {

using test::refusal;
using ::testing::AllOf;
using ::testing::HasSubstr;

using Rows = std::vector<std::int64_t>;

std::string refusal_of(const OrderOptions& options, std::int64_t num_samples = 1000,
                       std::int64_t epoch = 0) {
  return refusal([&] { EpochOrder(RowGroups(10, num_samples), options, epoch); });
}

Rows all_rows(const EpochOrder& order) {
  Rows rows;
  for (std::int64_t step = 0; step < order.num_steps(); ++step) {
    const Rows batch = order.batch(step);
    EXPECT_EQ(std::ssize(batch), order.batch_rows(step));
    rows.insert(rows.end(), batch.begin(), batch.end());
  }
  EXPECT_EQ(std::ssize(rows), order.num_delivered());
  return rows;
}

RowGroups groups_of(const nlohmann::json& entry) {
  const Rows files = entry["files"];
  if (!entry.contains("select")) return RowGroups(entry["k"], files);
  std::vector<RowRange> ranges;
  for (const auto& range : entry["select"]) ranges.push_back({range[0], range[1]});
  return RowGroups(entry["k"], files.at(0), RowSelection(ranges));
}

EpochOrder order_of(const nlohmann::json& entry, std::int64_t rank) {
  return EpochOrder(groups_of(entry),
                    {.mode = from_string<OrderMode>(entry["mode"].get<std::string>()),
                     .seed = entry["seed"],
                     .batch_size = entry["batch_size"],
                     .window_groups = entry["window_groups"],
                     .rank = rank,
                     .world_size = entry["world_size"],
                     .lanes = entry["lanes"],
                     .uneven = from_string<Uneven>(entry["uneven"].get<std::string>()),
                     .drop_last = entry["drop_last"]},
                    entry["epoch"]);
}

TEST(EpochOrder, MatchesTheReference) {
  int cases = 0;
  for (const auto& entry : test::golden_vectors("orders.json")) {
    SCOPED_TRACE(entry["name"].get<std::string>());
    std::int64_t steps = 0;
    for (std::int64_t rank = 0; rank < entry["world_size"]; ++rank) {
      const EpochOrder order = order_of(entry, rank);
      if (entry.contains("num_steps")) {
        ASSERT_EQ(order.num_steps(), entry["num_steps"][static_cast<std::size_t>(rank)]);
      }
      steps += order.num_steps();
    }
    // Small cases list every batch of every rank, large ones some.
    if (entry.contains("num_steps")) {
      ASSERT_EQ(std::ssize(entry["batches"]), steps);
    } else {
      ASSERT_FALSE(entry["batches"].empty());
    }
    for (const auto& batch : entry["batches"]) {
      const EpochOrder order = order_of(entry, batch[0]);
      const std::int64_t step = batch[1];
      ASSERT_EQ(order.batch(step), batch[2].get<Rows>()) << "rank " << batch[0] << " step " << step;
      ASSERT_EQ(order.batch_rows(step), std::ssize(batch[2]));
    }
    ++cases;
  }
  EXPECT_GE(cases, 110);
}

TEST(EpochOrder, LanesDefaultToWorldSize) {
  const EpochOrder order(RowGroups(10, 100), {.batch_size = 4, .rank = 1, .world_size = 3}, 2);
  EXPECT_EQ(order.options().lanes, 3);
  EXPECT_EQ(order.options().rank, 1);
  EXPECT_EQ(order.epoch(), 2);
  EXPECT_EQ(order.groups().num_groups(), 10);
}

TEST(EpochOrder, DropLastMayLeaveNothing) {
  const EpochOrder order(RowGroups(3, 10), {.batch_size = 11, .drop_last = true}, 0);
  EXPECT_EQ(order.num_steps(), 0);
  EXPECT_EQ(order.num_delivered(), 0);
}

TEST(EpochOrder, ASelectionOfManyGroupsIsDeliveredOnce) {
  // More groups than a table permutes, of 1 to 3 rows each.
  Rows selected;
  for (std::int64_t row = 0; row < 210'000; ++row) {
    if (row % 3 == 0 || row % 7 < 3) selected.push_back(row);
  }
  const RowGroups groups(3, 210'000, RowSelection::of(selected));
  ASSERT_EQ(groups.num_groups(), 70'000);
  for (const auto mode : {OrderMode::chunk_shuffled, OrderMode::sequential, OrderMode::random}) {
    Rows rows;
    for (std::int64_t rank = 0; rank < 2; ++rank) {
      const Rows part = all_rows(EpochOrder(groups,
                                            {.mode = mode,
                                             .seed = 2,
                                             .batch_size = 1 << 14,
                                             .window_groups = 1000,
                                             .rank = rank,
                                             .world_size = 2,
                                             .uneven = Uneven::exact},
                                            3));
      rows.insert(rows.end(), part.begin(), part.end());
    }
    EXPECT_EQ(std::is_sorted(rows.begin(), rows.end()), mode == OrderMode::sequential);
    std::sort(rows.begin(), rows.end());
    EXPECT_TRUE(rows == selected);
  }
}

TEST(EpochOrder, RefusesMoreLanesThanSelectedRows) {
  const RowGroups groups(10, 1000, RowSelection({{100, 107}}));
  EXPECT_THAT(refusal([&] { EpochOrder(groups, {.batch_size = 8, .lanes = 8}, 0); }),
              AllOf(HasSubstr("7 samples"), HasSubstr("8 lanes")));
  EXPECT_NO_THROW(EpochOrder(groups, {.batch_size = 7, .lanes = 7}, 0));
}

TEST(EpochOrder, ASelectionMayMakeLongGroupsShortEnough) {
  const std::int64_t many = std::int64_t{1} << 40;
  const RowSelection few({{7, 9}, {many - 3, many}});
  const EpochOrder order(RowGroups(1 << 20, many, few),
                         {.mode = OrderMode::sequential, .batch_size = 5, .window_groups = 1 << 20},
                         0);
  EXPECT_EQ(order.batch(0), (Rows{7, 8, many - 3, many - 2, many - 1}));
}

TEST(EpochOrder, WindowsWiderThanTheDataAreOneWindow) {
  const auto rows_of = [](std::int64_t window_groups) {
    return all_rows(
        EpochOrder(RowGroups(4, 50), {.batch_size = 8, .window_groups = window_groups}, 0));
  };
  EXPECT_EQ(rows_of(13), rows_of(std::numeric_limits<std::int64_t>::max()));
  EXPECT_NE(rows_of(13), rows_of(12));
}

TEST(EpochOrder, RefusesOptionsOutOfRange) {
  EXPECT_THAT(refusal_of({.batch_size = 0}), HasSubstr("batch_size"));
  EXPECT_THAT(refusal_of({.batch_size = std::int64_t{1} << 32}), HasSubstr("batch_size"));
  EXPECT_THAT(refusal_of({.window_groups = 0}), HasSubstr("window_groups"));
  EXPECT_THAT(refusal_of({.world_size = 0}), HasSubstr("world_size"));
  EXPECT_THAT(refusal_of({.rank = 2, .world_size = 2}), HasSubstr("rank = 2"));
  EXPECT_THAT(refusal_of({.rank = -1}), HasSubstr("rank"));
  EXPECT_THAT(refusal_of({.lanes = -1}), HasSubstr("lanes"));
  EXPECT_THAT(refusal_of({}, 1000, -1), HasSubstr("epoch"));
}

TEST(EpochOrder, SaysWhichLanesWouldDo) {
  // batch_size 12 on 4 ranks: 4, 8, 12, 16, 24 or 48 lanes.
  EXPECT_THAT(refusal_of({.batch_size = 12, .world_size = 4, .lanes = 9}),
              AllOf(HasSubstr("world_size = 4"), HasSubstr("lanes = 8 or 12 would do")));
  EXPECT_THAT(refusal_of({.batch_size = 12, .world_size = 4, .lanes = 3}),
              HasSubstr("lanes = 4 would do"));
  EXPECT_THAT(refusal_of({.batch_size = 12, .world_size = 4, .lanes = 50}),
              HasSubstr("lanes = 48 would do"));
}

TEST(EpochOrder, SaysWhichBatchSizesWouldDo) {
  EXPECT_THAT(refusal_of({.batch_size = 12, .world_size = 4, .lanes = 20}),
              AllOf(HasSubstr("lanes = 16 or 24"), HasSubstr("batch_size = 10 or 15")));
  EXPECT_THAT(refusal_of({.batch_size = 2, .world_size = 1, .lanes = 3}),
              AllOf(HasSubstr("lanes = 2,"), HasSubstr("batch_size = 3 ")));
}

TEST(EpochOrder, RefusesMoreLanesThanSamples) {
  EXPECT_THAT(refusal_of({.batch_size = 16, .lanes = 16}, 15),
              AllOf(HasSubstr("15 samples"), HasSubstr("16 lanes")));
  EXPECT_NO_THROW(EpochOrder(RowGroups(10, 16), {.batch_size = 16, .lanes = 16}, 0));
}

TEST(EpochOrder, RefusesExactWithDropLast) {
  EXPECT_THAT(refusal_of({.uneven = Uneven::exact, .drop_last = true}), HasSubstr("drop_last"));
}

TEST(EpochOrder, RefusesWindowsBeyond32Bits) {
  const std::int64_t many = std::int64_t{1} << 40;
  EXPECT_THAT(refusal([&] { EpochOrder(RowGroups(1 << 20, many), {.window_groups = 1 << 12}, 0); }),
              HasSubstr("at most 4095"));
  EXPECT_NO_THROW(EpochOrder(RowGroups(1 << 20, many), {.window_groups = (1 << 12) - 1}, 0));
  EXPECT_THAT(refusal([&] { EpochOrder(RowGroups(std::int64_t{1} << 33, many), {}, 0); }),
              HasSubstr("row groups of"));
  // A lane shorter than that clips the window.
  EXPECT_NO_THROW(EpochOrder(RowGroups(1 << 20, many),
                             {.batch_size = 1 << 10, .window_groups = 1 << 12, .lanes = 1 << 10},
                             0));
}

TEST(EpochOrder, RefusesStepsThatDoNotExist) {
  const EpochOrder order(RowGroups(10, 100), {.batch_size = 30}, 0);
  EXPECT_THAT(refusal([&] { (void)order.batch(4); }), HasSubstr("4 steps"));
  EXPECT_THAT(refusal([&] { (void)order.batch(-1); }), HasSubstr("step -1"));
}

}  // namespace
}  // namespace chunkio
