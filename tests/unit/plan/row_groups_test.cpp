#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chunkio/epoch_order.hpp>

#include "support/errors.hpp"
#include "support/scratch.hpp"

namespace chunkio {
namespace {

using test::refusal;
using ::testing::AllOf;
using ::testing::HasSubstr;

using Rows = std::vector<std::int64_t>;
using Ranges = std::vector<RowRange>;

constexpr std::int64_t kMaxRow = std::numeric_limits<std::int64_t>::max();

Ranges ranges_of(const RowSelection& selection) {
  return {selection.ranges().begin(), selection.ranges().end()};
}

std::vector<std::uint32_t> offsets_of(const RowGroups& groups, std::int64_t group) {
  std::vector<std::uint32_t> offsets{7, 7, 7};  // whatever it held
  groups.offsets(group, offsets);
  return offsets;
}

TEST(RowSelection, SortsAndJoinsRanges) {
  const RowSelection selection({{10, 12}, {0, 3}, {3, 5}, {20, 21}, {12, 14}});
  EXPECT_EQ(ranges_of(selection), (Ranges{{0, 5}, {10, 14}, {20, 21}}));
  EXPECT_EQ(selection.count(), 10);
}

TEST(RowSelection, TakesSingleRowsInAnyOrder) {
  const Rows rows{9, 3, 5, 4, 0};
  const RowSelection selection = RowSelection::of(rows);
  EXPECT_EQ(ranges_of(selection), (Ranges{{0, 1}, {3, 6}, {9, 10}}));
  EXPECT_EQ(selection.count(), 5);
}

TEST(RowSelection, RefusesNonsense) {
  EXPECT_THAT(refusal([] { RowSelection(Ranges{}); }), HasSubstr("no rows"));
  EXPECT_THAT(refusal([] { RowSelection({{3, 3}}); }), HasSubstr("[3, 3)"));
  EXPECT_THAT(refusal([] { RowSelection({{3, 2}}); }), HasSubstr("[3, 2)"));
  EXPECT_THAT(refusal([] { RowSelection({{-1, 2}}); }), HasSubstr("[-1, 2)"));
  EXPECT_THAT(refusal([] {
                RowSelection({{5, 9}, {0, 6}});
              }),
              HasSubstr("row 5 is selected twice"));
  EXPECT_THAT(refusal([] { RowSelection({{5, 6}, {0, 20}}); }), HasSubstr("row 5"));
  EXPECT_THAT(refusal([] { RowSelection::of(Rows{}); }), HasSubstr("no rows"));
  EXPECT_THAT(refusal([] {
                RowSelection::of(Rows{4, 2, 4});
              }),
              HasSubstr("row 4 is selected twice"));
  EXPECT_THAT(refusal([] { RowSelection::of(Rows{2, -4}); }), HasSubstr("row -4"));
  EXPECT_THAT(refusal([] { RowSelection::of(Rows{kMaxRow}); }), HasSubstr("cannot be selected"));
  EXPECT_EQ(RowSelection({{0, kMaxRow}}).count(), kMaxRow);
}

TEST(RowSelection, IsNeverEmptyAlsoAfterAMove) {
  RowSelection first({{1, 3}});
  const RowSelection second(std::move(first));
  EXPECT_EQ(ranges_of(first), ranges_of(second));  // NOLINT(bugprone-use-after-move): the point
}

TEST(RowGroups, LastGroupOfEachFileMayBeShort) {
  const Rows files{10, 8, 3};
  const RowGroups groups(4, files);
  EXPECT_EQ(groups.num_samples(), 21);
  EXPECT_EQ(groups.num_groups(), 3 + 2 + 1);
  Rows first, length;
  for (std::int64_t g = 0; g < groups.num_groups(); ++g) {
    first.push_back(groups.extent(g).begin);
    length.push_back(groups.length(g));
    EXPECT_EQ(groups.number_of(groups.extent(g).begin), g);
  }
  EXPECT_EQ(first, (Rows{0, 4, 8, 10, 14, 18}));
  EXPECT_EQ(length, (Rows{4, 4, 2, 4, 4, 3}));
  const Rows short_groups(groups.short_groups().begin(), groups.short_groups().end());
  EXPECT_EQ(short_groups, (Rows{2, 5}));
}

TEST(RowGroups, AGroupMayBeLargerThanTheData) {
  const RowGroups groups(100, 7);
  EXPECT_EQ(groups.num_groups(), 1);
  EXPECT_EQ(groups.length(0), 7);
}

TEST(RowGroups, KnowAllTheirRowsWithoutASelection) {
  const Rows files{10, 8, 3};
  const RowGroups groups(4, files);
  EXPECT_FALSE(groups.is_selection());
  EXPECT_EQ(groups.max_length(), 4);
  EXPECT_EQ(groups.extent(2), (RowRange{8, 10}));
  EXPECT_EQ(groups.extent(3), (RowRange{10, 14}));
  EXPECT_EQ(offsets_of(groups, 2), (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(groups.row(3, 2), 12);
  EXPECT_EQ(groups.memory_bytes(), 0);
}

TEST(RowGroups, ASelectionOfAllRowsIsNone) {
  const RowGroups groups(4, 18, RowSelection({{0, 18}}));
  EXPECT_FALSE(groups.is_selection());
  EXPECT_EQ(groups.memory_bytes(), 0);
  EXPECT_EQ(groups.length(4), 2);
}

TEST(RowGroups, SelectionsOfManyMoreGroupsCostOnlyTheirOwn) {
  const std::int64_t rows = 10'000'000'000;
  const RowGroups groups(100, rows, RowSelection({{5, 6}, {rows - 1, rows}}));
  EXPECT_EQ(groups.num_groups(), 2);
  EXPECT_EQ(groups.extent(1), (RowRange{rows - 100, rows}));
  EXPECT_LT(groups.memory_bytes(), 1000);
}

TEST(RowGroups, RefuseSelectedRowsTheyDoNotHave) {
  EXPECT_THAT(refusal([] {
                RowGroups(4, 18, RowSelection({{3, 19}}));
              }),
              AllOf(HasSubstr("row 18"), HasSubstr("18 rows"), HasSubstr("0 to 17")));
  EXPECT_THAT(refusal([] {
                RowGroups(4, 18, RowSelection({{2, 3}, {40, 41}}));
              }),
              HasSubstr("row 40"));
  const std::int64_t many = std::int64_t{1} << 40;
  EXPECT_THAT(refusal([&] {
                RowGroups(many, many, RowSelection({{2, 3}}));
              }),
              HasSubstr("too long"));
}

TEST(RowGroups, RefusesNonsense) {
  EXPECT_THAT(refusal([] { RowGroups(0, 5); }), HasSubstr("at least 1 sample"));
  EXPECT_THAT(refusal([] { RowGroups(5, 0); }), HasSubstr("at least 1 sample"));
  EXPECT_THAT(refusal([] { RowGroups(5, std::span<const std::int64_t>()); }), HasSubstr("file"));
  const Rows too_many{std::numeric_limits<std::int64_t>::max() - 4, 10};
  EXPECT_THAT(refusal([&] { RowGroups(1, too_many); }), HasSubstr("63 bits"));
  EXPECT_THAT(refusal([] { RowGroups(1000, std::numeric_limits<std::int64_t>::max()); }),
              HasSubstr("63 bits"));
}

/// As the next one.
TEST(RowSelection, IntersectsAsSetsDo) {
  std::mt19937_64 random(test::test_seed());
  for (int round = 0; round < 300; ++round) {
    Rows rows[2];
    Rows both;
    bool in[2] = {true, true};
    for (std::int64_t row = 0; row < 60; ++row) {
      for (std::size_t i = 0; i < 2; ++i) {
        if (random() % 3 == 0) in[i] = !in[i];
        if (in[i]) rows[i].push_back(row);
      }
      if (in[0] && in[1]) both.push_back(row);
    }
    if (rows[0].empty() || rows[1].empty()) continue;
    const auto common = RowSelection::of(rows[0]).intersect(RowSelection::of(rows[1]));
    ASSERT_EQ(common.has_value(), !both.empty());
    if (common) {
      ASSERT_EQ(ranges_of(*common), ranges_of(RowSelection::of(both)));
    }
  }
}

/// Against lists of all rows, on random selections. The seed is logged; set CHUNKIO_TEST_SEED to
/// repeat a run.
TEST(RowGroups, AgreeWithAListOfTheSelectedRows) {
  std::mt19937_64 random(test::test_seed());
  const auto between = [&](std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random);
  };
  for (int round = 0; round < 300; ++round) {
    Rows files(static_cast<std::size_t>(between(1, 4)));
    for (std::int64_t& rows : files) rows = between(1, 60);
    const std::int64_t num_rows = std::accumulate(files.begin(), files.end(), std::int64_t{0});
    const std::int64_t k = between(1, 15);
    const std::int64_t stay = between(1, 9);  // how long runs of selected rows tend to be
    Rows selected;
    bool in = between(0, 1) == 1;
    for (std::int64_t row = 0; row < num_rows; ++row) {
      if (between(0, stay) == 0) in = !in;
      if (in) selected.push_back(row);
    }
    if (selected.empty()) selected.push_back(between(0, num_rows - 1));
    Rows shuffled = selected;
    std::shuffle(shuffled.begin(), shuffled.end(), random);
    const RowGroups groups(k, files, RowSelection::of(shuffled));
    const RowGroups all(k, files);
    ASSERT_EQ(groups.is_selection(), std::ssize(selected) < num_rows);
    ASSERT_EQ(groups.num_samples(), std::ssize(selected));

    Rows rows;
    std::int64_t longest = 0;
    std::int64_t last_begin = -1;
    for (std::int64_t group = 0; group < groups.num_groups(); ++group) {
      const RowRange extent = groups.extent(group);
      ASSERT_EQ(extent, all.extent(all.number_of(extent.begin)));
      for (std::int64_t row = extent.begin; row < extent.end; ++row) {
        ASSERT_EQ(groups.number_of(row), all.number_of(extent.begin));
      }
      ASSERT_GT(extent.begin, last_begin);
      last_begin = extent.begin;
      const auto offsets = offsets_of(groups, group);
      ASSERT_FALSE(offsets.empty());
      ASSERT_EQ(groups.length(group), std::ssize(offsets));
      longest = std::max(longest, groups.length(group));
      for (std::size_t i = 0; i < offsets.size(); ++i) {
        ASSERT_LT(extent.begin + offsets[i], extent.end);
        rows.push_back(extent.begin + offsets[i]);
        ASSERT_EQ(groups.row(group, static_cast<std::int64_t>(i)), rows.back());
      }
    }
    ASSERT_EQ(rows, selected);
    ASSERT_EQ(groups.max_length(), longest);
  }
}

}  // namespace
}  // namespace chunkio
