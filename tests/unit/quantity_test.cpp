#include "quantity.hpp"

#include <gtest/gtest.h>

namespace {

using namespace bench;

TEST(Quantity, RoundsToThreeDigits) {
  EXPECT_EQ(rounded(0), "0");
  EXPECT_EQ(rounded(41'234), "41,200");
  EXPECT_EQ(rounded(999.6), "1,000");
  EXPECT_EQ(rounded(12.34), "12.3");
  EXPECT_EQ(rounded(2), "2");
  EXPECT_EQ(rounded(0.04217), "0.0422");
  EXPECT_EQ(rounded(1e-20), "0");
  EXPECT_EQ(rounded(1'234'567'890), "1,230,000,000");
}

TEST(Quantity, PrefixesGrowWithTheRoundedValue) {
  EXPECT_EQ(short_si(0), "0");
  EXPECT_EQ(short_si(0.421), "0.4");
  EXPECT_EQ(short_si(17.04), "17.0");
  EXPECT_EQ(short_si(985), "985");
  EXPECT_EQ(short_si(999.4), "999");
  EXPECT_EQ(short_si(999.5), "1.00k");
  EXPECT_EQ(short_si(41'234), "41.2k");
  EXPECT_EQ(short_si(999'499), "999k");
  EXPECT_EQ(short_si(999'500), "1.00M");
  EXPECT_EQ(si(1.92e9, "B/s"), "1.92 GB/s");
  EXPECT_EQ(si(12, "images/s"), "12.0 images/s");
}

TEST(Quantity, SizesArePowersOf1024) {
  EXPECT_EQ(size_text(0), "0 B");
  EXPECT_EQ(size_text(512), "512 B");
  EXPECT_EQ(size_text(1023), "1023 B");
  EXPECT_EQ(size_text(1024), "1 KiB");
  EXPECT_EQ(size_text(1536), "1.5 KiB");
  EXPECT_EQ(size_text(std::int64_t{4} << 20), "4 MiB");
  EXPECT_EQ(size_text((std::int64_t{4} << 20) - 1), "4 MiB");
  EXPECT_EQ(size_text(std::int64_t{1000} << 20), "1000 MiB");
  EXPECT_EQ(size_text((std::int64_t{1} << 30) - 1), "1 GiB");
  EXPECT_EQ(size_text(std::int64_t{1} << 53), "8 PiB");
}

TEST(Quantity, AlmostAllIsNotAll) {
  EXPECT_EQ(percent_text(0), "0 %");
  EXPECT_EQ(percent_text(1), "100 %");
  EXPECT_EQ(percent_text(0.934), "93.4 %");
  EXPECT_EQ(percent_text(0.9934), "99.34 %");
  EXPECT_EQ(percent_text(0.99996), ">99.99 %");
  EXPECT_EQ(percent_text(0.00004), "<0.01 %");
  EXPECT_EQ(percent_text(1.015), "101.5 %");
  EXPECT_EQ(percent_text(12.345), "1,234 %");
  EXPECT_EQ(share_text(0.934), "93 %");
  EXPECT_EQ(share_text(0.0234), "2.3 %");
  EXPECT_EQ(share_text(0.0996), "10 %");
}

TEST(Quantity, TicksHaveNoTrailingZeros) {
  EXPECT_EQ(tick_text("20.0 %"), "20 %");
  EXPECT_EQ(tick_text("1.50 GB/s"), "1.5 GB/s");
  EXPECT_EQ(tick_text("10.0k"), "10k");
  EXPECT_EQ(tick_text("100"), "100");
  EXPECT_EQ(tick_text("<0.01 %"), "<0.01 %");
}

TEST(Quantity, DurationsAndPlurals) {
  EXPECT_EQ(duration_text(12.34), "12.3 s");
  EXPECT_EQ(duration_text(250), "4 min 10 s");
  EXPECT_EQ(duration_text(7'500), "2 h 5 min");
  EXPECT_EQ(plural(1, "thread"), "1 thread");
  EXPECT_EQ(plural(1'200, "cell"), "1,200 cells");
}

}  // namespace
