#include "chunkbench/number_format.hpp"

#include <gtest/gtest.h>

namespace {

using namespace bench;

TEST(NumberFormat, RoundsToThreeDigits) {
  EXPECT_EQ(rounded(0), "0");
  EXPECT_EQ(rounded(41'234), "41,200");
  EXPECT_EQ(rounded(999.6), "1,000");
  EXPECT_EQ(rounded(12.34), "12.3");
  EXPECT_EQ(rounded(2), "2");
  EXPECT_EQ(rounded(0.04217), "0.0422");
  EXPECT_EQ(rounded(1'234'567'890), "1,230,000,000");
}

TEST(NumberFormat, PrefixesGrowWithTheRoundedValue) {
  EXPECT_EQ(si(0), "0");
  EXPECT_EQ(si(0.421), "0.4");
  EXPECT_EQ(si(17.04), "17.0");
  EXPECT_EQ(si(985), "985");
  EXPECT_EQ(si(999.4), "999");
  EXPECT_EQ(si(999.5), "1.00k");
  EXPECT_EQ(si(41'234), "41.2k");
  EXPECT_EQ(si(999'499), "999k");
  EXPECT_EQ(si(999'500), "1.00M");
  EXPECT_EQ(si(1.92e9, "B/s"), "1.92 GB/s");
  EXPECT_EQ(si(12, "images/s"), "12.0 images/s");
}

TEST(NumberFormat, ASpreadHasItsRange) {
  EXPECT_EQ(spread_text({{41'234, 40'000, 42'000}, 5}, rounded, " images/s"),
            "41,200 images/s (40,000 to 42,000, 5 rounds)");
  EXPECT_EQ(spread_text({{2, 2, 2}, 1}, rounded), "2 (1 round)");
}

TEST(NumberFormat, SizesArePowersOf1024) {
  EXPECT_EQ(size_text(0), "0 B");
  EXPECT_EQ(size_text(512), "512 B");
  EXPECT_EQ(size_text(1024), "1 KiB");
  EXPECT_EQ(size_text(1536), "1.5 KiB");
  EXPECT_EQ(size_text(std::int64_t{4} << 20), "4 MiB");
  EXPECT_EQ(size_text(std::int64_t{1} << 53), "8 PiB");
}

TEST(NumberFormat, AlmostAllIsNotAll) {
  EXPECT_EQ(percent_text(0), "0 %");
  EXPECT_EQ(percent_text(1), "100 %");
  EXPECT_EQ(percent_text(0.934), "93.4 %");
  EXPECT_EQ(percent_text(0.9934), "99.34 %");
  EXPECT_EQ(percent_text(0.99996), ">99.99 %");
  EXPECT_EQ(percent_text(0.00004), "<0.01 %");
  EXPECT_EQ(percent_text(1.015), "101.5 %");
  EXPECT_EQ(percent_text(12.345), "1,230 %");
}

TEST(NumberFormat, Plurals) {
  EXPECT_EQ(plural(1, "thread"), "1 thread");
  EXPECT_EQ(plural(1'200, "cell"), "1,200 cells");
}

}  // namespace
