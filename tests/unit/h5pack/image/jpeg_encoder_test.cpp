/// JpegEncoder: what it writes is decoded again, and what cannot be is refused.
#include "h5pack/image/jpeg_encoder.hpp"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include <gtest/gtest.h>

#include "h5pack/image/jpeg_decoder.hpp"
#include "support/errors.hpp"

namespace h5pack {
namespace {

using chunkio::ErrorCode;
using chunkio::test::expect_error;

/// Smooth [H,W,C], so that JPEG keeps it.
std::vector<std::uint8_t> smooth(ImageSize size, std::int64_t channels) {
  std::vector<std::uint8_t> pixels;
  for (std::int64_t y = 0; y < size.height; ++y) {
    for (std::int64_t x = 0; x < size.width; ++x) {
      for (std::int64_t c = 0; c < channels; ++c) {
        pixels.push_back(static_cast<std::uint8_t>(y * 2 + x + 40 * c));
      }
    }
  }
  return pixels;
}

int largest_difference(const std::vector<std::uint8_t>& a, const std::vector<std::uint8_t>& b) {
  int most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(int{a[i]} - int{b[i]}));
  return most;
}

TEST(JpegEncoder, ComesBackByItsQuality) {
  JpegDecoder decoder;
  for (const std::int64_t channels : {1, 3}) {
    const ColorMode color = channels == 1 ? ColorMode::gray : ColorMode::rgb;
    for (const ImageSize size : {ImageSize{1, 1}, ImageSize{17, 9}, ImageSize{40, 64}}) {
      const std::vector<std::uint8_t> pixels = smooth(size, channels);
      std::size_t last_bytes = 0;
      for (const int quality : {10, 60, 100}) {
        JpegEncoder encoder(quality);
        const auto file = encoder.encode(pixels, size, channels);
        ASSERT_EQ(decoder.open(file, "x"), size);
        std::vector<std::uint8_t> decoded(pixels.size());
        decoder.decode(color, decoded.data(), "x");
        const int allowed = quality < 100 ? 255 : channels == 1 ? 3 : 10;
        EXPECT_LE(largest_difference(pixels, decoded), allowed);
        EXPECT_GE(file.size(), last_bytes);
        last_bytes = file.size();
      }
    }
  }
}

// Noise takes more than its buffer has at first, and less the next time.
TEST(JpegEncoder, FilesOfAnySizeOneAfterTheOther) {
  JpegEncoder encoder(100);
  JpegDecoder decoder;
  std::vector<std::uint8_t> noise;
  std::uint32_t state = 1;
  for (int i = 0; i < 500 * 600 * 3; ++i) {
    state = state * 1664525 + 1013904223;
    noise.push_back(static_cast<std::uint8_t>(state >> 24));
  }
  std::vector<std::uint8_t> first;
  for (const ImageSize size : {ImageSize{500, 600}, ImageSize{8, 8}, ImageSize{500, 600}}) {
    const auto file = encoder.encode(noise, size, 3);
    EXPECT_EQ(decoder.open(file, "x"), size);
    std::vector<std::uint8_t> decoded(static_cast<std::size_t>(3 * size.pixels()));
    decoder.decode(ColorMode::rgb, decoded.data(), "x");
    if (size.height == 8) continue;
    if (!first.empty()) {
      EXPECT_TRUE(std::equal(file.begin(), file.end(), first.begin(), first.end()));
    }
    first.assign(file.begin(), file.end());
    EXPECT_GT(file.size(), std::size_t{128} << 10);
  }
}

TEST(JpegEncoder, RefusesWhatIsNoJpeg) {
  JpegEncoder encoder(90);
  const std::vector<std::uint8_t> pixels(std::size_t{3} * 65501);
  expect_error(ErrorCode::unsupported, {"65501x1", "65500"}, [&] {
    static_cast<void>(encoder.encode(pixels, {65501, 1}, 3));
  });
  for (const std::int64_t channels : {2, 4}) {
    expect_error(ErrorCode::unsupported, {"channels", "1 and 3"}, [&] {
      static_cast<void>(encoder.encode(pixels, {2, 2}, channels));
    });
  }
  EXPECT_GT(encoder.encode(pixels, {65500, 1}, 3).size(), 0U);
}

}  // namespace
}  // namespace h5pack
