#include "image/resized_crop.hpp"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "device/augmentation.hpp"
#include "support/errors.hpp"
#include "support/golden_vectors.hpp"

namespace chunkio::image {
namespace {

Size size_of(const nlohmann::json& sides) { return {sides[0], sides[1]}; }
Box box_of(const nlohmann::json& sides) { return {sides[0], sides[1], sides[2], sides[3]}; }

TEST(RandomResizedCrop, MatchesTheReference) {
  int compared = 0;
  for (const auto& entry : test::golden_vectors("resized_crops.json")) {
    SCOPED_TRACE(entry.dump());
    const RandomResizedCrop ranges = random_resized_crop_ranges(
        {entry["scale"][0], entry["scale"][1], entry["ratio"][0], entry["ratio"][1]});
    EXPECT_EQ(ranges.min_scale, entry["ranges"][0]);
    EXPECT_EQ(ranges.max_scale, entry["ranges"][1]);
    EXPECT_EQ(ranges.min_ratio, entry["ranges"][2]);
    EXPECT_EQ(ranges.max_ratio, entry["ranges"][3]);
    const base::PhiloxKey key = base::augmentation_key(entry["seed"], entry["epoch"]);
    for (std::size_t i = 0; i < entry["ids"].size(); ++i) {
      const std::int64_t id = entry["ids"][i];
      EXPECT_EQ(random_box(ranges, size_of(entry["image"]), key, id, entry["echo_pass"]),
                box_of(entry["boxes"][i]));
      EXPECT_EQ(is_flipped(key, id, entry["echo_pass"]), entry["flipped"][i]);
      ++compared;
    }
  }
  EXPECT_EQ(compared, 10 * 2 * 3 * 5);
}

TEST(RandomResizedCrop, FlipsAsASampleThatIsNotResized) {
  const device::CropPlan plan{
      .image_height = 8, .image_width = 8, .height = 8, .width = 8, .flip = true};
  const base::PhiloxKey key = base::augmentation_key(3, 4);
  for (std::int64_t id = 0; id < 100; ++id) {
    EXPECT_EQ(is_flipped(key, id, 5), device::crop_of(plan, key, id, 5).flipped);
  }
}

// What torchvision computes in floats from the same two numbers.
TEST(RandomResizedCrop, SidesAreTorchvisionsToAPixel) {
  constexpr Size kImage{375, 500};
  const RandomResizedCrop ranges = random_resized_crop_ranges({0.08, 1, 3.0 / 4, 4.0 / 3});
  const base::PhiloxKey key = base::augmentation_key(1, 2);
  int first_attempts = 0, equal = 0;
  double scales = 0, log_ratios = 0, squared_log_ratios = 0;
  constexpr int kSamples = 50'000;
  for (std::int64_t id = 0; id < kSamples; ++id) {
    const auto words = base::philox4x32({static_cast<std::uint32_t>(id), 0, 0, 1}, key);
    const auto unit = [&](std::size_t i) { return words[i] / 4294967296.0; };
    const double area = 375 * 500 * (0.08 + unit(0) * 0.92);
    const double log_ratio = std::log(3.0 / 4) + unit(1) * std::log(16.0 / 9);
    const double ratio = std::exp(log_ratio);
    scales += unit(0);
    log_ratios += std::log(ratio_at(ranges, words[1]) / 16777216.0);
    squared_log_ratios += std::pow(std::log(ratio_at(ranges, words[1]) / 16777216.0), 2);
    const double width = std::round(std::sqrt(area * ratio));
    const double height = std::round(std::sqrt(area / ratio));
    if (width > 500 || height > 375) continue;
    const Box box = random_box(ranges, kImage, key, id, 0);
    if (width == 500 || height == 375) continue;  // which may have been one pixel too much
    ++first_attempts;
    ASSERT_LE(std::fabs(box.width - width), 1) << id;
    ASSERT_LE(std::fabs(box.height - height), 1) << id;
    equal += box.width == width && box.height == height ? 1 : 0;
    ASSERT_EQ(box.top, static_cast<std::int32_t>(unit(2) * (kImage.height - box.height + 1)));
    ASSERT_EQ(box.left, static_cast<std::int32_t>(unit(3) * (kImage.width - box.width + 1)));
  }
  EXPECT_GT(first_attempts, kSamples / 2);
  EXPECT_GT(equal, first_attempts * 0.999);
  // Mean and variance of a uniform number, within five standard deviations of theirs.
  const double half = std::log(4.0 / 3);
  EXPECT_NEAR(scales / kSamples, 0.5, 5 * std::sqrt(1.0 / 12 / kSamples));
  EXPECT_NEAR(log_ratios / kSamples, 0, 5 * half * std::sqrt(1.0 / 3 / kSamples));
  EXPECT_NEAR(squared_log_ratios / kSamples, half * half / 3,
              5 * half * half * std::sqrt(4.0 / 45 / kSamples));
}

TEST(RandomResizedCrop, BoxesLieInTheirImage) {
  const base::PhiloxKey key = base::augmentation_key(5, 6);
  const RandomResizedCrop widest = random_resized_crop_ranges({0, 1, 1.0 / 64, 64});
  const RandomResizedCrop whole = random_resized_crop_ranges({1, 1, 3.0 / 4, 4.0 / 3});
  for (const RandomResizedCrop& ranges : {widest, whole}) {
    for (const std::int32_t height : {1, 2, 3, 63, 64, 65, 500, kMaxSide}) {
      for (const std::int32_t width : {1, 2, 3, 63, 64, 65, 500, kMaxSide}) {
        for (std::int64_t id = 0; id < 50; ++id) {
          const Box box = random_box(ranges, {height, width}, key, id, 0);
          ASSERT_GE(box.top, 0);
          ASSERT_GE(box.left, 0);
          ASSERT_GE(box.height, 1);
          ASSERT_GE(box.width, 1);
          ASSERT_LE(box.top + box.height, height);
          ASSERT_LE(box.left + box.width, width);
        }
      }
    }
  }
}

TEST(RandomResizedCrop, RefusesRangesThatAreNone) {
  EXPECT_EQ(test::refusal([] {
              random_resized_crop_ranges({0.5, 0.4, 1, 1});
            }),
            "the scale of a random resized crop is a range within 0 to 1, like 0.08 to 1, not "
            "0.500000 to 0.400000");
  EXPECT_EQ(test::refusal([] {
              random_resized_crop_ranges({0.08, 1, 0.01, 1});
            }),
            "the ratio of a random resized crop is a range within 1/64 to 64, like 3/4 to 4/3, "
            "not 0.010000 to 1.000000");
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(random_resized_crop_ranges({nan, 1, 1, 1}), Error);
  EXPECT_THROW(random_resized_crop_ranges({0, 0, 1, 1}), Error);
  EXPECT_THROW(random_resized_crop_ranges({0, 1.01, 1, 1}), Error);
  EXPECT_THROW(random_resized_crop_ranges({0, 1, 1, nan}), Error);
  EXPECT_THROW(random_resized_crop_ranges({0, 1, 1, 65}), Error);
}

TEST(FloorSqrt, IsExactAroundSquares) {
  EXPECT_EQ(floor_sqrt(0), 0U);
  EXPECT_EQ(floor_sqrt(std::numeric_limits<std::uint64_t>::max()), 0xFFFFFFFFU);
  for (std::uint64_t root = 1; root < (std::uint64_t{1} << 32); root += root / 1000 + 1) {
    ASSERT_EQ(floor_sqrt(root * root), root);
    ASSERT_EQ(floor_sqrt(root * root - 1), root - 1);
    ASSERT_EQ(floor_sqrt(root * root + 2 * root), root);
  }
}

TEST(ResizeAndCenterCrop, MatchesTheReference) {
  int compared = 0;
  for (const auto& entry : test::golden_vectors("center_crops.json")) {
    SCOPED_TRACE(entry.dump());
    const Size image = size_of(entry["image"]);
    EXPECT_EQ(resize_shorter_side_and_center_crop(image, entry["side"], size_of(entry["crop"])),
              (ResizedCrop{{0, 0, image.height, image.width},
                           size_of(entry["resized"]),
                           box_of(entry["window"]),
                           false}));
    ++compared;
  }
  EXPECT_EQ(compared, 11);
}

TEST(ResizeAndCenterCrop, RefusesWhatWouldNeedPadding) {
  const auto message = [](Size image, std::int32_t side, Size crop) {
    return test::refusal([&] { resize_shorter_side_and_center_crop(image, side, crop); });
  };
  EXPECT_EQ(message({375, 500}, 200, {224, 224}),
            "a crop of 224x224 does not fit into an image of 375x500 resized to 200x266; resize "
            "the shorter side to more pixels, or crop fewer");
  EXPECT_EQ(message({1, 400}, 224, {224, 224}),
            "an image of 1x400 pixels whose shorter side becomes 224 has a longer side of 89600, "
            "above 65535; take such an image whole, or a random part of it");
  EXPECT_NO_THROW(resize_shorter_side_and_center_crop({375, 500}, 224, {224, 298}));
  EXPECT_THROW(resize_shorter_side_and_center_crop({375, 500}, 224, {224, 299}), Error);
}

}  // namespace
}  // namespace chunkio::image
