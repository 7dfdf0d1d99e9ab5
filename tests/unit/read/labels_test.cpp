#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include <chunkio/statistics.hpp>

namespace chunkio {
namespace {

using Counts = std::vector<std::int64_t>;

Counts counted(const std::vector<Counts>& blocks) {
  LabelHistogram histogram;
  for (const Counts& block : blocks) histogram.add({.classes = block});
  return histogram.result();
}

TEST(LabelHistogram, ClassesOfAllBlocks) {
  EXPECT_EQ(counted({{0, 2, 2}, {}, {5, 0}}), (Counts{2, 0, 2, 0, 0, 1}));
  EXPECT_EQ(counted({}), Counts());
}

TEST(LabelHistogram, WhatIsNoClassLeavesNothing) {
  EXPECT_EQ(counted({{0, 1}, {-1}, {1}}), Counts());
  EXPECT_EQ(counted({{0, 1}, {100'000}}), Counts());
  EXPECT_EQ(counted({{99'999}}).size(), 100'000U);
}

TEST(LabelHistogram, AttributesThatAreSet) {
  const std::vector<std::uint8_t> first = {1, 0, 1, 0, 0, 7};
  const std::vector<std::uint8_t> second = {0, 0, 1};
  LabelHistogram histogram;
  histogram.add({.attributes = first, .num_attributes = 3});
  histogram.add({.first_row = 2, .attributes = second, .num_attributes = 3});
  EXPECT_EQ(histogram.result(), (Counts{1, 0, 3}));
}

}  // namespace
}  // namespace chunkio
