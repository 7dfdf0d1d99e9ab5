#include "device/augmentation.hpp"

#include <array>
#include <cstdint>
#include <map>

#include <gtest/gtest.h>

#include "support/golden_vectors.hpp"

namespace chunkio::device {
namespace {

TEST(Augmentation, MatchesTheReference) {
  int compared = 0;
  for (const auto& entry : test::golden_vectors("crops.json")) {
    SCOPED_TRACE(entry.dump());
    const auto& sizes = entry["sizes"];
    const CropPlan plan{.image_height = sizes[0],
                        .image_width = sizes[1],
                        .height = sizes[2],
                        .width = sizes[3],
                        .padding = sizes[4],
                        .random_crop = sizes[5],
                        .flip = sizes[6]};
    const base::PhiloxKey key = augmentation_key(entry["seed"], entry["epoch"]);
    for (std::size_t i = 0; i < entry["ids"].size(); ++i) {
      const auto& wanted = entry["crops"][i];
      EXPECT_EQ(crop_of(plan, key, entry["ids"][i], entry["echo_pass"]),
                (Crop{wanted[0], wanted[1], wanted[2]}));
      ++compared;
    }
  }
  EXPECT_EQ(compared, 5 * 2 * 3 * 5);
}

TEST(Augmentation, EveryPlaceAndBothSidesComeEquallyOften) {
  const CropPlan plan{.image_height = 8,
                      .image_width = 6,
                      .height = 7,
                      .width = 6,
                      .padding = 1,
                      .random_crop = true,
                      .flip = true};
  std::map<std::array<int, 3>, int> counts;
  constexpr int kSamples = 240'000;
  const base::PhiloxKey key = augmentation_key(3, 1);
  for (std::int64_t id = 0; id < kSamples; ++id) {
    const Crop crop = crop_of(plan, key, id, 0);
    ++counts[{crop.top, crop.left, crop.flipped ? 1 : 0}];
  }
  // top -1 ... 2, left -1 ... 1, flipped or not: 24 outcomes of 10,000 each, standard deviation 98.
  ASSERT_EQ(counts.size(), 24U);
  EXPECT_EQ(counts.begin()->first[0], -1);
  EXPECT_EQ(counts.rbegin()->first[0], 2);
  for (const auto& [outcome, count] : counts) EXPECT_NEAR(count, kSamples / 24, 500);
}

TEST(Augmentation, SeedEpochSampleAndPassEachMatter) {
  const CropPlan plan{
      .image_height = 1 << 20, .image_width = 1, .height = 1, .width = 1, .random_crop = true};
  const Crop crop = crop_of(plan, augmentation_key(1, 2), 3, 4);
  EXPECT_EQ(crop_of(plan, augmentation_key(1, 2), 3, 4), crop);
  EXPECT_NE(crop_of(plan, augmentation_key(2, 2), 3, 4), crop);
  EXPECT_NE(crop_of(plan, augmentation_key(1, 3), 3, 4), crop);
  EXPECT_NE(crop_of(plan, augmentation_key(1, 2), 4, 4), crop);
  EXPECT_NE(crop_of(plan, augmentation_key(1, 2), 3, 5), crop);
}

}  // namespace
}  // namespace chunkio::device
