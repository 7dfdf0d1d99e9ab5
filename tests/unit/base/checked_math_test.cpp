#include "base/checked_math.hpp"

#include <array>
#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

namespace {

using namespace chunkio::base;

constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
constexpr auto kMin = std::numeric_limits<std::int64_t>::min();

TEST(CheckedMath, MultiplyTellsOverflow) {
  EXPECT_EQ(checked_multiply<std::int64_t>(6, 7), 42);
  EXPECT_EQ(checked_multiply<std::int64_t>(kMax, 1), kMax);
  EXPECT_EQ(checked_multiply<std::int64_t>(kMax, 0), 0);
  EXPECT_EQ(checked_multiply<std::int64_t>(kMax / 2 + 1, 2), std::nullopt);
  EXPECT_EQ(checked_multiply<std::int64_t>(kMin, -1), std::nullopt);
  EXPECT_EQ(checked_multiply<std::uint32_t>(65536, 65536), std::nullopt);
  EXPECT_EQ(checked_multiply<std::uint32_t>(65535, 65537), 4294967295U);
}

TEST(CheckedMath, AddTellsOverflow) {
  EXPECT_EQ(checked_add<std::int64_t>(kMax - 1, 1), kMax);
  EXPECT_EQ(checked_add<std::int64_t>(kMax, 1), std::nullopt);
  EXPECT_EQ(checked_add<std::int64_t>(kMin, -1), std::nullopt);
  EXPECT_EQ(checked_add<std::uint8_t>(200, 56), std::nullopt);
}

TEST(CheckedMath, ProductOfNothingIsOne) {
  EXPECT_EQ(checked_product(std::span<const std::int64_t>()), 1);
}

TEST(CheckedMath, ProductStopsAtOverflow) {
  constexpr std::array<std::int64_t, 4> fits{1 << 20, 1 << 20, 1 << 20, 7};
  EXPECT_EQ(checked_product<std::int64_t>(fits), std::int64_t{7} << 60);
  constexpr std::array<std::int64_t, 4> wraps_to_zero{std::int64_t{1} << 32, std::int64_t{1} << 32,
                                                      1, 1};
  EXPECT_EQ(checked_product<std::int64_t>(wraps_to_zero), std::nullopt);
}

TEST(CheckedMath, CeilDivideRoundsUp) {
  EXPECT_EQ(ceil_divide(0, 5), 0);
  EXPECT_EQ(ceil_divide(1, 5), 1);
  EXPECT_EQ(ceil_divide(5, 5), 1);
  EXPECT_EQ(ceil_divide(6, 5), 2);
  EXPECT_EQ(ceil_divide(kMax, 2), kMax / 2 + 1);
  EXPECT_EQ(ceil_divide(kMax, kMax), 1);
}

}  // namespace
