#include "axis.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

using bench::Axis;
using testing::DoubleEq;
using testing::ElementsAre;
using testing::Pointwise;

TEST(Axis, LinearEndsAreRound) {
  const Axis axis = Axis::linear(0, 1.93e9);
  EXPECT_DOUBLE_EQ(axis.lowest(), 0);
  EXPECT_DOUBLE_EQ(axis.highest(), 2e9);
  EXPECT_THAT(axis.ticks(), ElementsAre(0, 5e8, 1e9, 1.5e9, 2e9));
  EXPECT_DOUBLE_EQ(axis.place(1.5e9), 0.75);
}

TEST(Axis, LinearKeepsExactEnds) {
  EXPECT_DOUBLE_EQ(Axis::linear(0, 1).highest(), 1);
  const Axis upper = Axis::linear(0.58, 1);
  EXPECT_DOUBLE_EQ(upper.lowest(), 0.5);
  EXPECT_DOUBLE_EQ(upper.highest(), 1);
}

TEST(Axis, OneValueGetsAnAxisAroundIt) {
  const Axis axis = Axis::linear(5, 5);
  EXPECT_LT(axis.lowest(), 5);
  EXPECT_GT(axis.highest(), 5);
  EXPECT_GT(Axis::linear(0, 0).highest(), 0);
  EXPECT_DOUBLE_EQ(Axis::linear(0, 0).lowest(), 0);
  const Axis ratios = Axis::logarithmic(8, 8);
  EXPECT_NEAR(ratios.place(8), 0.5, 1e-12);
}

TEST(Axis, ValuesThatDifferByRoundingOnlyAreOne) {
  for (const double value : {1.0, 0.3, 7.7e6, 1e15, 1e-9}) {
    const double above = std::nextafter(value, 2 * value);
    for (const Axis& axis : {Axis::linear(value, above), Axis::linear(value, value * (1 + 1e-12)),
                             Axis::linear(-above, -value)}) {
      EXPECT_GE(axis.ticks().size(), 2U) << value;
      EXPECT_LE(axis.ticks().size(), 10U) << value;
    }
    EXPECT_LT(Axis::linear(value, above).lowest(), 0.9 * value);
    EXPECT_GT(Axis::linear(value, above).highest(), 1.1 * value);
  }
  EXPECT_LE(Axis::linear(0, std::numeric_limits<double>::denorm_min()).ticks().size(), 10U);
  EXPECT_LE(Axis::linear(1, 1 + 1e-8).ticks().size(), 10U);
}

TEST(Axis, RatiosHaveRoundTicksBetweenTheEnds) {
  const Axis axis = Axis::logarithmic(17, 70'800);
  EXPECT_DOUBLE_EQ(axis.place(17), 0);
  EXPECT_DOUBLE_EQ(axis.place(70'800), 1);
  const std::vector<double> expected = {30, 100, 300, 1'000, 3'000, 10'000, 30'000};
  EXPECT_THAT(axis.ticks(), Pointwise(DoubleEq(), expected));
}

TEST(Axis, TicksAreFewAndAscendWhateverTheRange) {
  for (const double ratio : {1.01, 1.3, 2.0, 7.0, 60.0, 1e4, 1e9, 1e25}) {
    for (const double from : {1e-9, 0.3, 1.0, 7.7e6}) {
      for (const Axis& axis :
           {Axis::logarithmic(from, from * ratio), Axis::linear(from, from * ratio)}) {
        EXPECT_GE(axis.ticks().size(), 2U) << from << " " << ratio;
        EXPECT_LE(axis.ticks().size(), 10U) << from << " " << ratio;
        for (std::size_t i = 0; i < axis.ticks().size(); ++i) {
          if (i > 0) {
            EXPECT_GT(axis.ticks()[i], axis.ticks()[i - 1]);
          }
          EXPECT_NEAR(axis.place(axis.ticks()[i]), 0.5, 0.5 + 1e-6);
        }
      }
    }
  }
}

}  // namespace
