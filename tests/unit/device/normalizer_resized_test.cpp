// Random resized crops of a Normalizer: what a plain one makes of images that were cut and resized
// before, by the portable code whose pixels are compared with Pillow's elsewhere.
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <chunkio/chunkio.hpp>

#include "base/access.hpp"
#include "base/philox.hpp"
#include "image/resize.hpp"
#include "image/resized_crop.hpp"
#include "support/errors.hpp"

namespace chunkio {
namespace {

DatasetInfo info_of(image::Size size, std::int64_t channels, Layout layout) {
  DatasetInfo info{.path = "train.h5",
                   .height = size.height,
                   .width = size.width,
                   .channels = channels,
                   .layout = layout};
  info.stored.shape = layout == Layout::nhwc ? Shape{10, size.height, size.width, channels}
                                             : Shape{10, channels, size.height, size.width};
  return info;
}

struct Draw {
  std::uint64_t seed = 7;
  std::int64_t epoch = 3;
  std::int64_t echo_pass = 2;
};

/// Images, and what is done to them.
class Case {
 public:
  Case(image::Size size, std::int64_t channels, Layout input, const NormalizeOptions& options,
       std::int64_t num_samples, std::mt19937& random)
      : info_(info_of(size, channels, input)), size_(size), options_(options) {
    options_.mean = {0.4};
    options_.std = {0.25};
    for (std::int64_t i = 0; i < num_samples; ++i) {
      ids_.push_back(static_cast<std::int64_t>(random()) << 9);
    }
    pixels_.resize(static_cast<std::size_t>(num_samples * info_.sample_bytes()));
    for (std::byte& pixel : pixels_) pixel = static_cast<std::byte>(random());
  }

  [[nodiscard]] std::string about() const {
    return std::to_string(size_.height) + "x" + std::to_string(size_.width) + ", " +
           std::to_string(info_.channels) + " channels, " + std::string(to_string(info_.layout)) +
           " to " + std::to_string(output().height) + "x" + std::to_string(output().width) + " " +
           std::string(to_string(options_.layout)) + " " + std::string(to_string(options_.dtype));
  }
  [[nodiscard]] const DatasetInfo& info() const { return info_; }
  [[nodiscard]] const NormalizeOptions& options() const { return options_; }
  [[nodiscard]] std::size_t num_samples() const { return ids_.size(); }

  [[nodiscard]] std::vector<std::byte> made(const Draw& draw, std::int64_t num_threads = 2) const {
    NormalizeOptions options = options_;
    options.seed = draw.seed;
    return made_by(Normalizer(info_, options, num_threads), draw);
  }
  [[nodiscard]] std::vector<std::byte> made_by(const Normalizer& normalize,
                                               const Draw& draw) const {
    return run(normalize, info_, pixels_, draw);
  }

  [[nodiscard]] std::vector<std::byte> expected(const Draw& draw) const {
    const DatasetInfo resized = info_of(output(), info_.channels, info_.layout);
    std::vector<std::byte> images;
    for (std::size_t i = 0; i < ids_.size(); ++i) append_resized(i, draw, images);
    NormalizeOptions options = options_;
    options.random_resized_crop.reset();
    options.crop_height = 0;
    options.crop_width = 0;
    options.flip = false;
    return run(Normalizer(resized, options, 1), resized, images, draw);
  }

 private:
  [[nodiscard]] image::Size output() const {
    const auto side = [](std::int64_t crop, std::int32_t image) {
      return crop == 0 ? image : static_cast<std::int32_t>(crop);
    };
    return {side(options_.crop_height, size_.height), side(options_.crop_width, size_.width)};
  }
  [[nodiscard]] std::vector<std::byte> run(const Normalizer& normalize, const DatasetInfo& info,
                                           const std::vector<std::byte>& images,
                                           const Draw& draw) const {
    const auto n = static_cast<std::int64_t>(ids_.size());
    std::vector<std::byte> output(normalize.output_bytes(n), std::byte{0xA5});
    normalize({images.data(), DType::uint8, info.sample_shape().with_first_axis(n)}, ids_,
              draw.epoch, output, draw.echo_pass);
    return output;
  }
  /// Plane by plane, and flipped pixel by pixel afterwards.
  void append_resized(std::size_t i, const Draw& draw, std::vector<std::byte>& images) const {
    const ResizedCropRanges& wanted = *options_.random_resized_crop;
    const base::PhiloxKey key =
        base::augmentation_key(draw.seed, static_cast<std::uint64_t>(draw.epoch));
    const auto pass = static_cast<std::uint32_t>(draw.echo_pass);
    const image::Box box =
        image::random_box(image::random_resized_crop_ranges(wanted), size_, key, ids_[i], pass);
    const bool flipped = options_.flip && image::is_flipped(key, ids_[i], pass);
    const auto channels = static_cast<std::size_t>(info_.channels);
    const auto height = static_cast<std::size_t>(output().height);
    const auto width = static_cast<std::size_t>(output().width);
    const auto image_width = static_cast<std::size_t>(size_.width);
    const std::size_t image_pixels = static_cast<std::size_t>(size_.height) * image_width;
    const bool by_turns = info_.layout == Layout::nhwc;
    const std::byte* const image = pixels_.data() + i * image_pixels * channels;
    const std::size_t begin = images.size();
    images.resize(begin + height * width * channels);
    image::ResizePlan plan(image::ResizePlan::Instructions::portable);
    plan.prepare(image::resized(box, output()), 1);
    std::vector<std::uint8_t> scratch(plan.scratch_bytes());
    std::vector<std::uint8_t> plane(image_pixels);
    std::vector<std::uint8_t> resized(height * width);
    for (std::size_t c = 0; c < channels; ++c) {
      for (std::size_t p = 0; p < image_pixels; ++p) {
        plane[p] =
            static_cast<std::uint8_t>(image[by_turns ? p * channels + c : c * image_pixels + p]);
      }
      const std::size_t first =
          static_cast<std::size_t>(box.top) * image_width + static_cast<std::size_t>(box.left);
      plan.resize({plane.data() + first, image_width}, {resized.data(), width}, scratch);
      for (std::size_t p = 0; p < height * width; ++p) {
        const std::size_t x = flipped ? width - 1 - p % width : p % width;
        images[begin + (by_turns ? p * channels + c : c * height * width + p)] =
            static_cast<std::byte>(resized[p - p % width + x]);
      }
    }
  }

  DatasetInfo info_;
  image::Size size_;
  NormalizeOptions options_;
  std::vector<std::int64_t> ids_;
  std::vector<std::byte> pixels_;
};

NormalizeOptions resized_to(std::int64_t height, std::int64_t width) {
  return {.crop_height = height,
          .crop_width = width,
          .random_resized_crop = ResizedCropRanges{},
          .flip = true};
}

TEST(ResizedNormalizer, RandomSizesFormsAndRangesAreThoseOfImagesResizedBefore) {
  std::mt19937 random(1);
  const auto below = [&random](std::uint32_t end) {
    return static_cast<std::int32_t>(random() % end);
  };
  for (int i = 0; i < 400; ++i) {
    NormalizeOptions options = resized_to(below(60), below(60));  // 0: that of the image
    options.dtype = std::vector{DType::float32, DType::float16, DType::bfloat16}[random() % 3];
    options.layout = below(2) == 0 ? Layout::nhwc : Layout::nchw;
    options.flip = below(2) == 0;
    if (below(2) == 0) options.random_resized_crop = {{0, 1, 1.0 / 20, 20}};
    const Layout input = below(2) == 0 ? Layout::nhwc : Layout::nchw;
    const Case one({1 + below(130), 1 + below(130)}, 1 + below(4), input, options, 3, random);
    const Draw draw{random(), below(100), below(3)};
    ASSERT_EQ(one.made(draw), one.expected(draw)) << one.about();
  }
}

TEST(ResizedNormalizer, WhatTrainingDoesIsRight) {
  std::mt19937 random(2);
  for (const Layout input : {Layout::nhwc, Layout::nchw}) {
    const Case one({375, 500}, 3, input, resized_to(224, 224), 4, random);
    EXPECT_EQ(one.made({}), one.expected({}));
  }
}

TEST(ResizedNormalizer, ThreadsAndStoresDoNotMatter) {
  std::mt19937 random(3);
  for (const Layout input : {Layout::nhwc, Layout::nchw}) {
    const Case one({90, 110}, 3, input, resized_to(96, 96), 40, random);
    const std::vector<std::byte> expected = one.expected({});
    for (const std::int64_t threads : {1, 2, 7}) EXPECT_EQ(one.made({}, threads), expected);
    NormalizeOptions options = one.options();
    options.seed = Draw{}.seed;
    const auto streaming = internal::Access::make<Normalizer>(one.info(), options, std::int64_t{3},
                                                              std::int64_t{1} << 20);
    for (int again = 0; again < 3; ++again) EXPECT_EQ(one.made_by(streaming, {}), expected);
  }
}

TEST(ResizedNormalizer, SeedEpochAndEchoPassChangeTheBoxes) {
  std::mt19937 random(4);
  const Case one({20, 30}, 3, Layout::nhwc, resized_to(8, 8), 4, random);
  const std::vector<std::byte> first = one.made({.seed = 1, .epoch = 1, .echo_pass = 0});
  EXPECT_NE(first, one.made({.seed = 2, .epoch = 1, .echo_pass = 0}));
  EXPECT_NE(first, one.made({.seed = 1, .epoch = 2, .echo_pass = 0}));
  EXPECT_NE(first, one.made({.seed = 1, .epoch = 1, .echo_pass = 1}));
}

TEST(ResizedNormalizer, WhatCannotBeIsRefused) {
  const auto refused = [](const std::vector<std::string>& parts, NormalizeOptions options,
                          image::Size size = {20, 30}) {
    options.mean = {0};
    options.std = {1};
    test::expect_error(ErrorCode::invalid_argument, parts, [&] {
      const Normalizer normalize(info_of(size, 3, Layout::nhwc), options);
    });
  };
  NormalizeOptions options = resized_to(8, 8);
  options.random_crop = true;
  refused({"train.h5: random_resized_crop excludes random_crop"}, options);
  options = resized_to(8, 8);
  options.padding = 4;
  refused({"train.h5: random_resized_crop excludes padding"}, options);
  refused({"train.h5: crop_height must be 1 to 65535", "got 65536"}, resized_to(65536, 8));
  refused({"crop_width must be 1 to 65535", "got -1"}, resized_to(8, -1));
  refused({"the width of images must be 1 to 65535", "got 65536"}, resized_to(8, 8), {1, 65536});
  options = resized_to(8, 8);
  options.random_resized_crop->min_scale = 2;
  refused({"train.h5: the scale of a random resized crop"}, options);
  options = resized_to(8, 8);
  options.random_resized_crop->max_ratio = std::numeric_limits<double>::quiet_NaN();
  refused({"train.h5: the ratio of a random resized crop"}, options);
}

}  // namespace
}  // namespace chunkio
