#include "colour_scale.hpp"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

namespace {

using namespace bench;

double distance(Colour one, Colour other) {
  const auto a = oklab(one);
  const auto b = oklab(other);
  return std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
}

TEST(ColourScale, GrowsLighterAllTheWay) {
  for (int i = 1; i <= 100; ++i) {
    EXPECT_GT(oklab(colour_at(i / 100.0))[0], oklab(colour_at((i - 1) / 100.0))[0]) << i;
  }
}

// Bytes of sRGB round each step a little.
TEST(ColourScale, EqualStepsLookEqual) {
  double smallest = 1;
  double largest = 0;
  for (int i = 1; i <= 16; ++i) {
    const double step = distance(colour_at(i / 16.0), colour_at((i - 1) / 16.0));
    smallest = std::min(smallest, step);
    largest = std::max(largest, step);
  }
  EXPECT_LT(largest / smallest, 1.15);
}

TEST(ColourScale, TextCanBeReadOnEveryColour) {
  for (int i = 0; i <= 256; ++i) {
    const Colour background = colour_at(i / 256.0);
    EXPECT_GE(contrast(ink_on(background), background), 4.5) << background.hex();
  }
}

TEST(ColourScale, ContrastIsThatOfWcag) {
  EXPECT_NEAR(contrast({0, 0, 0}, {255, 255, 255}), 21, 1e-9);
  EXPECT_NEAR(contrast({118, 118, 118}, {255, 255, 255}), 4.54, 0.01);
  EXPECT_EQ((Colour{1, 171, 255}).hex(), "#01abff");
}

TEST(ColourScale, OklabOfKnownColours) {
  const auto white = oklab({255, 255, 255});
  EXPECT_NEAR(white[0], 1, 1e-3);
  EXPECT_NEAR(white[1], 0, 1e-3);
  const auto red = oklab({255, 0, 0});
  EXPECT_NEAR(red[0], 0.6280, 1e-3);
  EXPECT_NEAR(red[1], 0.2249, 1e-3);
  EXPECT_NEAR(red[2], 0.1258, 1e-3);
}

TEST(ValueColours, StepsAreEvenOrRatios) {
  const ValueColours even(0, 200);
  EXPECT_DOUBLE_EQ(even.place(50), 0.25);
  EXPECT_DOUBLE_EQ(even.value_at(0.25), 50);
  const ValueColours ratios(1, 10'000, ValueColours::Better::more, ValueColours::Steps::ratios);
  EXPECT_DOUBLE_EQ(ratios.place(100), 0.5);
  EXPECT_NEAR(ratios.value_at(0.5), 100, 1e-9);
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
