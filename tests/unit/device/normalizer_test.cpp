#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include <chunkio/chunkio.hpp>

#include "base/access.hpp"
#include "device/augmentation.hpp"
#include "device/value.hpp"
#include "harness/scratch_folder.hpp"
#include "support/errors.hpp"
#include "support/pixels.hpp"

namespace chunkio {
namespace {

using test::expect_error;

struct Images {
  std::int64_t height = 5, width = 4, channels = 3;
  Layout layout = Layout::nhwc;

  [[nodiscard]] std::int64_t bytes() const { return height * width * channels; }
  [[nodiscard]] DatasetInfo info() const {
    DatasetInfo info{.path = "train.h5",
                     .height = height,
                     .width = width,
                     .channels = channels,
                     .layout = layout};
    info.stored.shape = layout == Layout::nhwc ? Shape{10, height, width, channels}
                                               : Shape{10, channels, height, width};
    ChannelStatistics statistics;
    for (std::int64_t c = 0; c < channels; ++c) {
      statistics.mean.push_back(0.35 + 0.1 * static_cast<double>(c));
      statistics.std.push_back(0.2 + 0.03 * static_cast<double>(c));
    }
    info.statistics = statistics;
    return info;
  }
  [[nodiscard]] std::vector<std::byte> rows(const std::vector<std::int64_t>& ids) const {
    std::vector<std::byte> all;
    for (const std::int64_t id : ids) {
      const std::vector<std::byte> one = test::image(id, bytes());
      all.insert(all.end(), one.begin(), one.end());
    }
    return all;
  }
  [[nodiscard]] int value(std::int64_t id, std::int64_t c, std::int64_t y, std::int64_t x) const {
    const std::int64_t at =
        layout == Layout::nhwc ? (y * width + x) * channels + c : (c * height + y) * width + x;
    return static_cast<int>(test::pixel(id, at));
  }
};

double number(DType dtype, const std::byte* element) {
  if (dtype == DType::float32) {
    float value = 0;
    std::memcpy(&value, element, sizeof value);
    return static_cast<double>(value);
  }
  std::uint16_t bits = 0;
  std::memcpy(&bits, element, sizeof bits);
  if (dtype == DType::bfloat16) return std::bit_cast<float>(std::uint32_t{bits} << 16);
  const int exponent = (bits >> 10) & 0x1F;
  const double magnitude = exponent == 0 ? std::ldexp(bits & 0x3FF, -24)
                                         : std::ldexp(1024 + (bits & 0x3FF), exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

/// Compares every output value with (value / 255 - mean) / std, found by indices alone.
void expect_normalized(const Images& images, const NormalizeOptions& given,
                       const std::vector<std::int64_t>& ids, std::int64_t epoch,
                       std::int64_t echo_pass) {
  const DatasetInfo info = images.info();
  const Normalizer normalize(info, given, 2);
  const NormalizeOptions& options = normalize.options();
  const std::int64_t h = given.crop_height == 0 ? images.height : given.crop_height;
  const std::int64_t w = given.crop_width == 0 ? images.width : given.crop_width;
  const device::CropPlan plan{.image_height = static_cast<std::int32_t>(images.height),
                              .image_width = static_cast<std::int32_t>(images.width),
                              .height = static_cast<std::int32_t>(h),
                              .width = static_cast<std::int32_t>(w),
                              .padding = static_cast<std::int32_t>(given.padding),
                              .random_crop = given.random_crop,
                              .flip = given.flip};
  const auto n = static_cast<std::int64_t>(ids.size());
  const std::vector<std::byte> pixels = images.rows(ids);
  std::vector<std::byte> output(normalize.output_bytes(n), std::byte{0xA5});
  normalize({pixels.data(), DType::uint8, info.sample_shape().with_first_axis(n)}, ids, epoch,
            output, echo_pass);

  const double tolerance = given.dtype == DType::float32   ? 1e-6
                           : given.dtype == DType::float16 ? 1.0 / 1024
                                                           : 1.0 / 128;
  const std::size_t element = size_of(given.dtype);
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t id = ids[static_cast<std::size_t>(i)];
    const device::Crop crop = device::crop_of(
        plan, base::augmentation_key(given.seed.value_or(0), static_cast<std::uint64_t>(epoch)),
        id, static_cast<std::uint32_t>(echo_pass));
    for (std::int64_t c = 0; c < images.channels; ++c) {
      const auto channel = static_cast<std::size_t>(c);
      for (std::int64_t y = 0; y < h; ++y) {
        for (std::int64_t x = 0; x < w; ++x) {
          const std::int64_t from_y = crop.top + y;
          const std::int64_t from_x = crop.left + (crop.flipped ? w - 1 - x : x);
          const bool inside =
              from_y >= 0 && from_y < images.height && from_x >= 0 && from_x < images.width;
          const int value = inside ? images.value(id, c, from_y, from_x) : 0;
          const double wanted = (value / 255.0 - options.mean[channel]) / options.std[channel];
          const std::int64_t at = given.layout == Layout::nchw
                                      ? ((i * images.channels + c) * h + y) * w + x
                                      : ((i * h + y) * w + x) * images.channels + c;
          const double got =
              number(given.dtype, output.data() + static_cast<std::size_t>(at) * element);
          ASSERT_NEAR(got, wanted, tolerance * std::max(1.0, std::fabs(wanted)))
              << "sample " << i << " channel " << c << " row " << y << " column " << x;
        }
      }
    }
  }
}

class NormalizerTest : public ::testing::TestWithParam<std::tuple<Layout, Layout, DType>> {};

TEST_P(NormalizerTest, EveryPixelIsWhereAndWhatItShouldBe) {
  const auto& [input, output, dtype] = GetParam();
  const std::vector<std::int64_t> ids{7, 0, 7, 123'456'789'012};
  for (std::int64_t channels = 1; channels <= 4; ++channels) {
    for (const auto& [height, width] :
         {std::pair<std::int64_t, std::int64_t>{5, 4}, {1, 1}, {3, 37}, {33, 35}}) {
      const Images images{height, width, channels, input};
      NormalizeOptions options{.dtype = dtype, .layout = output, .seed = 9};
      const auto check = [&](const std::string& what, std::int64_t epoch, std::int64_t pass) {
        SCOPED_TRACE(what + ", " + std::to_string(channels) + " channels, " +
                     std::to_string(height) + "x" + std::to_string(width));
        expect_normalized(images, options, ids, epoch, pass);
      };
      check("whole", 0, 0);
      options.flip = true;
      check("flipped", 1, 0);
      options.padding = 2;
      options.random_crop = true;
      check("padded, cropped to the same size", 2, 1);
      options.crop_height = height + 4;
      options.crop_width = width + 4;
      check("larger than the image", 3, 0);
      options.padding = 0;
      options.crop_height = (height + 1) / 2;
      options.crop_width = (width + 1) / 2;
      check("smaller", 4, 2);
      options.crop_width = 0;
      options.flip = false;
      check("whole rows", 4, 3);
      options.random_crop = false;
      options.crop_height = 1;
      options.crop_width = 1;
      check("one pixel of the middle", 5, 0);
      options.padding = 50;
      options.crop_height = height + 3;
      check("a column of the middle, and padding", 5, 0);
      if (HasFatalFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, NormalizerTest,
                         ::testing::Combine(::testing::Values(Layout::nhwc, Layout::nchw),
                                            ::testing::Values(Layout::nhwc, Layout::nchw),
                                            ::testing::Values(DType::float32, DType::float16,
                                                              DType::bfloat16)),
                         [](const auto& suite) {
                           return std::string(to_string(std::get<0>(suite.param))) + "To" +
                                  std::string(to_string(std::get<1>(suite.param))) + "As" +
                                  std::string(to_string(std::get<2>(suite.param)));
                         });

std::vector<std::byte> normalized(const Normalizer& normalize, const Images& images,
                                  const std::vector<std::int64_t>& ids, std::int64_t epoch = 0,
                                  std::int64_t echo_pass = 0) {
  const auto n = static_cast<std::int64_t>(ids.size());
  const std::vector<std::byte> pixels = images.rows(ids);
  std::vector<std::byte> output(normalize.output_bytes(n));
  normalize({pixels.data(), DType::uint8, images.info().sample_shape().with_first_axis(n)}, ids,
            epoch, output, echo_pass);
  return output;
}

std::vector<std::byte> normalized(const Images& images, const NormalizeOptions& options,
                                  const std::vector<std::int64_t>& ids, std::int64_t epoch = 0,
                                  std::int64_t echo_pass = 0) {
  return normalized(Normalizer(images.info(), options), images, ids, epoch, echo_pass);
}

TEST(Normalizer, ImagesAreSplitAndGroupedIntoPiecesOfWork) {
  for (const Layout input : {Layout::nhwc, Layout::nchw}) {
    for (const Layout output : {Layout::nhwc, Layout::nchw}) {
      const NormalizeOptions options{
          .layout = output, .padding = 3, .random_crop = true, .flip = true, .seed = 4};
      SCOPED_TRACE(std::string(to_string(input)) + " to " + std::string(to_string(output)));
      expect_normalized({218, 178, 3, input}, options, {1, 2, 3, 4}, 0, 0);
      std::vector<std::int64_t> many(301);
      std::iota(many.begin(), many.end(), std::int64_t{0});
      expect_normalized({7, 11, 3, input}, options, many, 0, 0);
    }
  }
}

TEST(Normalizer, ABatchBeyondTheCacheIsThatOfItsSamples) {
  const Images images{218, 178, 3, Layout::nhwc};
  const NormalizeOptions options{.padding = 9, .random_crop = true, .flip = true};
  const auto sample_bytes =
      static_cast<std::int64_t>(Normalizer(images.info(), options).output_bytes(1));
  constexpr std::int64_t kCacheBytes = std::int64_t{4} << 20;
  std::vector<std::int64_t> ids(static_cast<std::size_t>(kCacheBytes / sample_bytes + 2));
  std::iota(ids.begin(), ids.end(), std::int64_t{0});
  const std::vector<std::byte> all = normalized(
      internal::Access::make<Normalizer>(images.info(), options, std::int64_t{3}, kCacheBytes),
      images, ids);
  for (const std::int64_t id : ids) {
    const std::vector<std::byte> one = normalized(images, options, {id});
    ASSERT_TRUE(std::equal(one.begin(), one.end(), all.begin() + id * sample_bytes))
        << "sample " << id;
  }
}

TEST(Normalizer, TakesBatchesOfALoader) {
  const test::ScratchFolder folder;
  const std::string path = folder.file("pictures.h5");
  test::write_packed(path, {.num_samples = 30});
  Loader loader(Dataset::open(path), {.batch_size = 8, .seed = 5, .io = {.num_epochs = 1}});
  const Normalizer normalize(loader.dataset().info(), {.mean = {0}, .std = {1}, .flip = true});
  const Normalizer with_seed(loader.dataset().info(),
                             {.mean = {0}, .std = {1}, .flip = true, .seed = 5});
  EXPECT_EQ(normalize.options().std, (std::vector<double>{1, 1, 1}));
  std::int64_t samples = 0;
  for (const Batch& batch : loader.epoch(0)) {
    EXPECT_EQ(normalize.output_shape(batch.size()), (Shape{batch.size(), 3, 5, 4}));
    std::vector<std::byte> output(normalize.output_bytes(batch.size()));
    std::vector<std::byte> again(output.size());
    normalize(batch, output);
    with_seed(batch.images(), batch.sample_ids(), batch.epoch(), again);
    EXPECT_EQ(output, again) << "the seed is that of the loader";
    samples += batch.size();
  }
  EXPECT_EQ(samples, 30);
}

TEST(Normalizer, WhatCannotBeIsRefused) {
  const Images images;
  const auto refused = [&](const std::vector<std::string>& parts, const NormalizeOptions& options) {
    expect_error(ErrorCode::invalid_argument, parts,
                 [&] { const Normalizer normalize(images.info(), options); });
  };
  refused({"train.h5", "float64"}, {.dtype = DType::float64});
  refused({"train.h5", "random_crop has no room", "padding", "crop_height"},
          {.mean = {0}, .std = {1}, .random_crop = true});
  refused({"train.h5", "padding has no effect", "random_crop", "crop_width above 5 and 4"},
          {.mean = {0}, .std = {1}, .padding = 4});
  refused({"padding has no effect"}, {.crop_height = 5, .crop_width = 4, .padding = 1});
  refused({"mean has 2 numbers", "3 channels"}, {.mean = {0, 0}, .std = {1, 1}});
  refused({"std has 4 numbers"}, {.mean = {0}, .std = {1, 1, 1, 1}});
  refused({"only mean"}, {.mean = {0}});
  refused({"only std"}, {.std = {1}});
  refused({"std must be above 0"}, {.mean = {0}, .std = {0}});
  refused({"std must be above 0"}, {.mean = {0}, .std = {-1}});
  refused({"std must be above 0"}, {.mean = {0}, .std = {1e-60}});
  refused({"mean is too large"}, {.mean = {1e300}, .std = {1}});
  refused({"mean must be finite"}, {.mean = {std::nan("")}, .std = {1}});
  refused({"crop_height 6", "padding of 0", "raise padding"}, {.crop_height = 6});
  refused({"crop_width 9", "padding of 2"}, {.crop_width = 9, .padding = 2});
  refused({"crop_width must be >= 0"}, {.crop_width = -1});
  refused({"padding must be"}, {.padding = -1});
  refused({"padding must be"}, {.padding = (std::int64_t{1} << 20) + 1});
  for (const std::int64_t num_threads : {-1, 1025}) {
    expect_error(ErrorCode::invalid_argument, {"num_threads"}, [&] {
      const Normalizer normalize(images.info(), {.mean = {0}, .std = {1}}, num_threads);
    });
  }
  DatasetInfo info = images.info();
  info.statistics.reset();
  expect_error(ErrorCode::not_found, {"train.h5", "mean = 0"},
               [&] { const Normalizer normalize(info); });
  EXPECT_NO_THROW(Normalizer(info, {.mean = {0.5}, .std = {0.25}}));
  const DatasetInfo vectors{
      .path = "x.h5", .leading = {"x", DType::float32, Shape{784}}, .num_samples = 9};
  expect_error(ErrorCode::unsupported, {"x.h5: x float32 [9,784] are no images"},
               [&] { const Normalizer normalize(vectors, {.mean = {0}, .std = {1}}); });
  info.channels = 5;
  expect_error(ErrorCode::unsupported, {"5 channels"},
               [&] { const Normalizer normalize(info, {.mean = {0}, .std = {1}}); });
}

TEST(Normalizer, WrongArgumentsAreRefused) {
  const Images images;
  const Normalizer normalize(images.info());
  const std::vector<std::int64_t> ids{1, 2};
  const std::vector<std::byte> pixels = images.rows(ids);
  const Shape shape{2, 5, 4, 3};
  std::vector<std::byte> output(normalize.output_bytes(2) + 4);
  const std::span<std::byte> fits = std::span(output).first(output.size() - 4);
  const auto refused = [&](const std::string& part, const Tensor& view, std::span<std::byte> to,
                           std::int64_t pass) {
    expect_error(ErrorCode::invalid_argument, {part}, [&] { normalize(view, ids, 0, to, pass); });
  };
  refused("uint8 [2,5,4,3]", {pixels.data(), DType::uint8, Shape{1, 5, 4, 3}}, fits, 0);
  refused("uint8 [2,5,4,3]", {pixels.data(), DType::int8, shape}, fits, 0);
  refused("uint8 [2,5,4,3]", {}, fits, 0);
  refused("bytes instead of", {pixels.data(), DType::uint8, shape}, output, 0);
  refused("aligned", {pixels.data(), DType::uint8, shape},
          std::span(output).subspan(1, output.size() - 4), 0);
  refused("echo_pass", {pixels.data(), DType::uint8, shape}, fits, -1);
  refused("echo_pass", {pixels.data(), DType::uint8, shape}, fits, std::int64_t{1} << 32);
  EXPECT_NO_THROW(normalize({pixels.data(), DType::uint8, shape}, ids, 0, fits));
  EXPECT_NO_THROW(normalize({pixels.data(), DType::uint8, Shape{0, 5, 4, 3}}, {}, 0, {}));
}

}  // namespace
}  // namespace chunkio
