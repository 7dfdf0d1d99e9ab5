/// SizeLimit and JpegLimiter: which sizes images get, and that their pixels are averages.
#include "h5pack/image/jpeg_limiter.hpp"

#include <cstdlib>
#include <vector>

#include <gtest/gtest.h>

#include "h5pack/image/jpeg_decoder.hpp"

namespace h5pack {
namespace {

TEST(SizeLimit, KeepsTheShapeAndRoundsToTheNearestPixel) {
  const SizeLimit limit{.max_side = 100};
  EXPECT_FALSE(limit.exceeded_by({100, 100}));
  EXPECT_TRUE(limit.exceeded_by({101, 3}));
  EXPECT_TRUE(limit.exceeded_by({3, 101}));
  EXPECT_EQ(limit.limited({200, 100}), (ImageSize{100, 50}));
  EXPECT_EQ(limit.limited({100, 200}), (ImageSize{50, 100}));
  EXPECT_EQ(limit.limited({300, 300}), (ImageSize{100, 100}));
  EXPECT_EQ(limit.limited({400, 3}), (ImageSize{100, 1}));  // 0.75
  EXPECT_EQ(limit.limited({5, 200}), (ImageSize{3, 100}));  // 2.5
  EXPECT_EQ(limit.limited({1, 60000}), (ImageSize{1, 100}));
  EXPECT_FALSE(SizeLimit{}.exceeded_by({60000, 60000}));
}

TEST(JpegLimiter, AveragesAndTellsWhatDecodes) {
  // Columns of 0 and 200 alternate: every third pixel, say, would be one of them.
  constexpr ImageSize kSize{90, 120};
  std::vector<std::uint8_t> pixels;
  for (std::int64_t i = 0; i < kSize.pixels(); ++i) {
    for (int c = 0; c < 3; ++c) pixels.push_back(i % 2 == 0 ? 0 : 200);
  }
  JpegLimiter limiter({.max_side = 60, .quality = 95});
  for (int i = 0; i < 2; ++i) {
    const JpegLimiter::Result result = limiter.limited(pixels, kSize, "x");
    EXPECT_EQ(result.size, (ImageSize{45, 60}));
    ASSERT_EQ(std::ssize(result.pixels), 3 * result.size.pixels());
    for (const std::uint8_t value : result.pixels) EXPECT_LE(std::abs(value - 100), 2);
    JpegDecoder decoder;
    ASSERT_EQ(decoder.open(result.file, "x"), result.size);
    std::vector<std::uint8_t> decoded(result.pixels.size());
    decoder.decode(ColorMode::rgb, decoded.data(), "x");
    EXPECT_TRUE(std::equal(decoded.begin(), decoded.end(), result.pixels.begin()));
  }
}

}  // namespace
}  // namespace h5pack
