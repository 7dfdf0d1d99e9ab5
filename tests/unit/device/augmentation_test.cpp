#include "device/augmentation.hpp"

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
    const base::PhiloxKey key = base::augmentation_key(entry["seed"], entry["epoch"]);
    for (std::size_t i = 0; i < entry["ids"].size(); ++i) {
      const auto& wanted = entry["crops"][i];
      EXPECT_EQ(crop_of(plan, key, entry["ids"][i], entry["echo_pass"]),
                (Crop{wanted[0], wanted[1], wanted[2]}));
      ++compared;
    }
  }
  EXPECT_EQ(compared, 5 * 2 * 3 * 5);
}

}  // namespace
}  // namespace chunkio::device
