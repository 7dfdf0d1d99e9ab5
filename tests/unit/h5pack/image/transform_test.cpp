#include "h5pack/image/transform.hpp"

#include <cstdint>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "support/errors.hpp"

namespace h5pack {
namespace {

using chunkio::Error;
using chunkio::ErrorCode;
using Pixels = std::vector<std::uint8_t>;

/// Every byte different as far as possible.
Pixels ramp(ImageSize size, std::int64_t channels) {
  Pixels pixels(static_cast<std::size_t>(size.pixels() * channels));
  std::iota(pixels.begin(), pixels.end(), std::uint8_t{1});
  return pixels;
}

Pixels apply(const ImageOptions& options, const Pixels& in, ImageSize size) {
  ImageTransform transform(options);
  const ImageSize out = transform.output_size(size, "in");
  Pixels pixels(static_cast<std::size_t>(out.pixels() * options.channels()), 0xEE);
  transform.apply(in.data(), size, size, pixels.data());
  return pixels;
}

TEST(ImageTransform, WithoutOptionsIsIdentity) {
  const ImageSize size{5, 7};
  EXPECT_TRUE(ImageTransform({}).is_identity(size));
  EXPECT_EQ(apply({}, ramp(size, 3), size), ramp(size, 3));
}

TEST(ImageTransform, NchwSeparatesChannels) {
  ImageOptions options;
  options.layout = chunkio::Layout::nchw;
  EXPECT_FALSE(ImageTransform(options).is_identity({2, 2}));
  EXPECT_EQ(apply(options, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, {2, 2}),
            (Pixels{1, 4, 7, 10, 2, 5, 8, 11, 3, 6, 9, 12}));
  options.color = ColorMode::gray;
  EXPECT_TRUE(ImageTransform(options).is_identity({2, 2}));
}

TEST(ImageTransform, CenterCropRoundsHalvesToEvenAsTorchvisionDoes) {
  ImageOptions options;
  options.color = ColorMode::gray;
  options.center_crop = ImageSize{1, 2};
  // Rows: difference 1 -> 0.5 -> 0. Columns: difference 3 -> 1.5 -> 2.
  EXPECT_EQ(apply(options, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, {2, 5}), (Pixels{3, 4}));
}

TEST(ImageTransform, PadCentresOnBlack) {
  ImageOptions options;
  options.pad = ImageSize{3, 2};
  EXPECT_EQ(apply(options, {1, 2, 3}, {1, 1}),
            (Pixels{0, 0, 0, 0, 0, 0, 1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(ImageTransform, ShorterSideKeepsTheAspectRatio) {
  ImageOptions options;
  options.resize = parse_resize("256");
  const ImageTransform transform(options);
  EXPECT_FALSE(transform.fixed_size().has_value());
  EXPECT_EQ(transform.output_size({500, 375}, ""), (ImageSize{341, 256}));
  EXPECT_EQ(transform.output_size({375, 500}, ""), (ImageSize{256, 341}));
  EXPECT_EQ(transform.output_size({256, 300}, ""), (ImageSize{256, 300}));
  EXPECT_TRUE(transform.is_identity({256, 300}));
}

TEST(ImageTransform, AreaAveragesWholePixels) {
  ImageOptions options;
  options.color = ColorMode::gray;
  options.resize = parse_resize("1x2");
  EXPECT_EQ(apply(options, {10, 20, 100, 120, 30, 40, 140, 160}, {2, 4}), (Pixels{25, 130}));
}

TEST(ImageTransform, NearestTakesPixelCentres) {
  ImageOptions options;
  options.color = ColorMode::gray;
  options.interpolation = Interpolation::nearest;
  options.resize = parse_resize("1x3");
  EXPECT_EQ(apply(options, {1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 9}), (Pixels{2, 5, 8}));
}

TEST(ImageTransform, AConstantImageStaysConstant) {
  for (const auto interpolation :
       {Interpolation::nearest, Interpolation::bilinear, Interpolation::bicubic,
        Interpolation::area, Interpolation::lanczos}) {
    for (const char* size : {"7x9", "40x31"}) {
      ImageOptions options;
      options.interpolation = interpolation;
      options.resize = parse_resize(size);
      const Pixels out = apply(options, Pixels(20 * 20 * 3, 77), {20, 20});
      EXPECT_EQ(out, Pixels(out.size(), 77)) << size;
    }
  }
}

TEST(ImageTransform, ResizeCropAndLayoutCombine) {
  ImageOptions options;
  options.interpolation = Interpolation::nearest;
  options.resize = parse_resize("4");
  options.center_crop = ImageSize{2, 2};
  const Pixels nhwc = apply(options, ramp({4, 4}, 3), {4, 4});
  EXPECT_EQ(nhwc, (Pixels{16, 17, 18, 19, 20, 21, 28, 29, 30, 31, 32, 33}));
  options.layout = chunkio::Layout::nchw;
  EXPECT_EQ(apply(options, ramp({4, 4}, 3), {4, 4}),
            (Pixels{16, 19, 28, 31, 17, 20, 29, 32, 18, 21, 30, 33}));
  EXPECT_EQ(apply(options, ramp({8, 8}, 3), {8, 8}).size(), 12U);
}

TEST(ImageTransform, ImagesThatDoNotFitAreNamed) {
  ImageOptions crop;
  crop.center_crop = ImageSize{10, 10};
  chunkio::test::expect_error(ErrorCode::unsupported, {"'small.jpg' is 9x20", "--resize"}, [&] {
    (void)ImageTransform(crop).output_size({9, 20}, "small.jpg");
  });
  ImageOptions pad;
  pad.pad = ImageSize{10, 10};
  EXPECT_THROW((void)ImageTransform(pad).output_size({11, 5}, ""), Error);
}

TEST(ImageTransform, ContradictionsAreFoundBeforeAnyImage) {
  ImageOptions both;
  both.pad = both.center_crop = ImageSize{10, 10};
  EXPECT_THROW(ImageTransform{both}, Error);
  ImageOptions crop;
  crop.resize = parse_resize("8x8");
  crop.center_crop = ImageSize{10, 8};
  EXPECT_THROW(ImageTransform{crop}, Error);
  ImageOptions pad;
  pad.resize = parse_resize("8x8");
  pad.pad = ImageSize{7, 9};
  EXPECT_THROW(ImageTransform{pad}, Error);
}

TEST(ImageSizeText, AcceptsSizesAndNothingElse) {
  EXPECT_EQ(parse_image_size("218x178"), (ImageSize{218, 178}));
  EXPECT_EQ(parse_resize("64").shorter_side, 64);
  EXPECT_EQ(parse_resize("64X32").size, (ImageSize{64, 32}));
  for (const char* text :
       {"", "x", "0x5", "5x0", "-1x5", "5x", "x5", "5x5x5", "1e3x5", " 5x5", "70000x1"}) {
    EXPECT_THROW((void)parse_image_size(text), Error) << text;
    EXPECT_THROW((void)parse_resize(text), Error) << text;
  }
  EXPECT_THROW((void)parse_image_size("64"), Error);
}

}  // namespace
}  // namespace h5pack
