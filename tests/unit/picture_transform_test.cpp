#include "picture_transform.hpp"

#include <cstdint>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include <chunkio/error.hpp>

#include "orientation.hpp"

namespace h5pack {
namespace {

using chunkio::Error;
using chunkio::ErrorCode;
using Pixels = std::vector<std::uint8_t>;

/// Every byte different as far as possible.
Pixels ramp(PictureSize size, std::int64_t channels) {
  Pixels pixels(static_cast<std::size_t>(size.pixels() * channels));
  std::iota(pixels.begin(), pixels.end(), std::uint8_t{1});
  return pixels;
}

Pixels apply(const PictureOptions& options, const Pixels& in, PictureSize size) {
  PictureTransform transform(options);
  const PictureSize out = transform.output_size(size, "in");
  Pixels pixels(static_cast<std::size_t>(out.pixels() * options.channels()), 0xEE);
  transform.apply(in.data(), size, size, pixels.data());
  return pixels;
}

TEST(PictureTransform, WithoutOptionsIsIdentity) {
  const PictureSize size{5, 7};
  EXPECT_TRUE(PictureTransform({}).is_identity(size));
  EXPECT_EQ(apply({}, ramp(size, 3), size), ramp(size, 3));
}

TEST(PictureTransform, NchwSeparatesChannels) {
  PictureOptions options;
  options.layout = chunkio::Layout::nchw;
  EXPECT_FALSE(PictureTransform(options).is_identity({2, 2}));
  EXPECT_EQ(apply(options, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, {2, 2}),
            (Pixels{1, 4, 7, 10, 2, 5, 8, 11, 3, 6, 9, 12}));
  options.color = ColorMode::gray;
  EXPECT_TRUE(PictureTransform(options).is_identity({2, 2}));
}

TEST(PictureTransform, CenterCropRoundsHalvesToEvenAsTorchvisionDoes) {
  PictureOptions options;
  options.color = ColorMode::gray;
  options.center_crop = PictureSize{1, 2};
  // Rows: difference 1 -> 0.5 -> 0. Columns: difference 3 -> 1.5 -> 2.
  EXPECT_EQ(apply(options, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, {2, 5}), (Pixels{3, 4}));
}

TEST(PictureTransform, PadCentresOnBlack) {
  PictureOptions options;
  options.pad = PictureSize{3, 2};
  EXPECT_EQ(apply(options, {1, 2, 3}, {1, 1}),
            (Pixels{0, 0, 0, 0, 0, 0, 1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(PictureTransform, ShorterSideKeepsTheAspectRatio) {
  PictureOptions options;
  options.resize = parse_resize("256");
  const PictureTransform transform(options);
  EXPECT_FALSE(transform.fixed_size().has_value());
  EXPECT_EQ(transform.output_size({500, 375}, ""), (PictureSize{341, 256}));
  EXPECT_EQ(transform.output_size({375, 500}, ""), (PictureSize{256, 341}));
  EXPECT_EQ(transform.output_size({256, 300}, ""), (PictureSize{256, 300}));
  EXPECT_TRUE(transform.is_identity({256, 300}));
}

TEST(PictureTransform, AreaAveragesWholePixels) {
  PictureOptions options;
  options.color = ColorMode::gray;
  options.resize = parse_resize("1x2");
  EXPECT_EQ(apply(options, {10, 20, 100, 120, 30, 40, 140, 160}, {2, 4}), (Pixels{25, 130}));
}

TEST(PictureTransform, NearestTakesPixelCentres) {
  PictureOptions options;
  options.color = ColorMode::gray;
  options.interpolation = Interpolation::nearest;
  options.resize = parse_resize("1x3");
  EXPECT_EQ(apply(options, {1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 9}), (Pixels{2, 5, 8}));
}

TEST(PictureTransform, AConstantPictureStaysConstant) {
  for (const auto interpolation :
       {Interpolation::nearest, Interpolation::bilinear, Interpolation::bicubic,
        Interpolation::area, Interpolation::lanczos}) {
    for (const char* size : {"7x9", "40x31"}) {
      PictureOptions options;
      options.interpolation = interpolation;
      options.resize = parse_resize(size);
      const Pixels out = apply(options, Pixels(20 * 20 * 3, 77), {20, 20});
      EXPECT_EQ(out, Pixels(out.size(), 77)) << size;
    }
  }
}

TEST(PictureTransform, ResizeCropAndLayoutCombine) {
  PictureOptions options;
  options.interpolation = Interpolation::nearest;
  options.resize = parse_resize("4");
  options.center_crop = PictureSize{2, 2};
  const Pixels nhwc = apply(options, ramp({4, 4}, 3), {4, 4});
  EXPECT_EQ(nhwc, (Pixels{16, 17, 18, 19, 20, 21, 28, 29, 30, 31, 32, 33}));
  options.layout = chunkio::Layout::nchw;
  EXPECT_EQ(apply(options, ramp({4, 4}, 3), {4, 4}),
            (Pixels{16, 19, 28, 31, 17, 20, 29, 32, 18, 21, 30, 33}));
  EXPECT_EQ(apply(options, ramp({8, 8}, 3), {8, 8}).size(), 12U);
}

TEST(PictureTransform, PicturesThatDoNotFitAreNamed) {
  PictureOptions crop;
  crop.center_crop = PictureSize{10, 10};
  try {
    (void)PictureTransform(crop).output_size({9, 20}, "small.jpg");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_NE(std::string(error.what()).find("'small.jpg' is 9x20"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("--resize"), std::string::npos);
  }
  PictureOptions pad;
  pad.pad = PictureSize{10, 10};
  EXPECT_THROW((void)PictureTransform(pad).output_size({11, 5}, ""), Error);
}

TEST(PictureTransform, ContradictionsAreFoundBeforeAnyPicture) {
  PictureOptions both;
  both.pad = both.center_crop = PictureSize{10, 10};
  EXPECT_THROW(PictureTransform{both}, Error);
  PictureOptions crop;
  crop.resize = parse_resize("8x8");
  crop.center_crop = PictureSize{10, 8};
  EXPECT_THROW(PictureTransform{crop}, Error);
  PictureOptions pad;
  pad.resize = parse_resize("8x8");
  pad.pad = PictureSize{7, 9};
  EXPECT_THROW(PictureTransform{pad}, Error);
}

TEST(PictureSizeText, AcceptsSizesAndNothingElse) {
  EXPECT_EQ(parse_picture_size("218x178"), (PictureSize{218, 178}));
  EXPECT_EQ(parse_resize("64").shorter_side, 64);
  EXPECT_EQ(parse_resize("64X32").size, (PictureSize{64, 32}));
  for (const char* text :
       {"", "x", "0x5", "5x0", "-1x5", "5x", "x5", "5x5x5", "1e3x5", " 5x5", "70000x1"}) {
    EXPECT_THROW((void)parse_picture_size(text), Error) << text;
    EXPECT_THROW((void)parse_resize(text), Error) << text;
  }
  EXPECT_THROW((void)parse_picture_size("64"), Error);
}

TEST(Orientation, MovesCornersWhereExifSays) {
  // 1 2 3
  // 4 5 6
  const Pixels stored = {1, 2, 3, 4, 5, 6};
  const std::vector<Pixels> upright = {{1, 2, 3, 4, 5, 6}, {3, 2, 1, 6, 5, 4}, {6, 5, 4, 3, 2, 1},
                                       {4, 5, 6, 1, 2, 3}, {1, 4, 2, 5, 3, 6}, {4, 1, 5, 2, 6, 3},
                                       {6, 3, 5, 2, 4, 1}, {3, 6, 2, 5, 1, 4}};
  for (int orientation = 1; orientation <= 8; ++orientation) {
    Pixels out(6);
    orient_pixels(stored.data(), {2, 3}, 1, orientation, out.data());
    EXPECT_EQ(out, upright[static_cast<std::size_t>(orientation - 1)]) << orientation;
    EXPECT_EQ(oriented_size({2, 3}, orientation),
              orientation < 5 ? (PictureSize{2, 3}) : (PictureSize{3, 2}));
  }
}

TEST(Orientation, DamagedExifReadsAsUpright) {
  const Pixels whole = {'I', 'I', 42, 0, 8, 0, 0, 0, 1, 0, 0x12, 1, 3,
                        0,   1,   0,  0, 0, 6, 0, 0, 0, 0, 0,    0, 0};
  EXPECT_EQ(exif_orientation(whole), 6);
  for (std::size_t size = 0; size < 22; ++size) {
    EXPECT_EQ(exif_orientation(std::span(whole).first(size)), 1) << size;
  }
  for (std::size_t i = 0; i < 18; ++i) {
    Pixels damaged = whole;
    damaged[i] ^= 0xFF;
    const int orientation = exif_orientation(damaged);
    EXPECT_TRUE(orientation == 1 || orientation == 6) << i;
  }
}

}  // namespace
}  // namespace h5pack
