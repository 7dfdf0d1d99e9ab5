#include "chunkbench/colour_scale.hpp"

#include <algorithm>

#include <gtest/gtest.h>

namespace {

using namespace bench;

TEST(ColourScale, GrowsLighterAllTheWay) {
  for (int i = 1; i <= 128; ++i) {
    EXPECT_GT(luminance(colour_at(i / 128.0)), luminance(colour_at((i - 1) / 128.0))) << i;
  }
}

TEST(ColourScale, TextCanBeReadOnEveryColour) {
  for (int i = 0; i <= 256; ++i) {
    const Colour background = colour_at(i / 256.0);
    const double one = luminance(background) + 0.05;
    const double other = luminance(ink_on(background)) + 0.05;
    EXPECT_GE(std::max(one, other) / std::min(one, other), 4.5) << background.hex();
  }
}

TEST(ColourScale, LuminanceIsThatOfWcag) {
  EXPECT_NEAR(luminance({255, 255, 255}), 1, 1e-9);
  EXPECT_NEAR(luminance({118, 118, 118}), 1.05 / 4.54 - 0.05, 0.001);
  EXPECT_EQ((Colour{1, 171, 255}).hex(), "#01abff");
}

TEST(ValueColours, StepsAreEvenOrRatios) {
  EXPECT_DOUBLE_EQ(ValueColours(0, 200).place(50), 0.25);
  const ValueColours ratios(1, 10'000, ValueColours::Better::more, ValueColours::Steps::ratios);
  EXPECT_DOUBLE_EQ(ratios.place(100), 0.5);
  EXPECT_DOUBLE_EQ(ratios.place(0), 0);
  EXPECT_DOUBLE_EQ(ratios.place(1e9), 1);
}

TEST(ValueColours, TheBetterEndIsLight) {
  EXPECT_EQ(ValueColours(0, 10).of(10), colour_at(1));
  EXPECT_EQ(ValueColours(0, 10, ValueColours::Better::less).of(10), colour_at(0));
  EXPECT_EQ(ValueColours(7, 7).of(7), colour_at(1));
  EXPECT_EQ(ValueColours(7, 7, ValueColours::Better::less).of(7), colour_at(1));
}

}  // namespace
