/// Where each sample is cropped and whether it is flipped: libchunkio/doc/order.md, section 10.
#pragma once

#include <cstdint>

#include "base/philox.hpp"

namespace chunkio::device {

/// Sizes in pixels.
struct CropPlan {
  std::int32_t image_height = 0;
  std::int32_t image_width = 0;
  std::int32_t height = 0;  ///< Of the output.
  std::int32_t width = 0;
  std::int32_t padding = 0;
  bool random_crop = false;
  bool flip = false;
};

/// The part of an image that becomes the output.
struct Crop {
  std::int32_t top = 0;   ///< Row of the image, negative in the padding above it.
  std::int32_t left = 0;  ///< Column, likewise.
  bool flipped = false;   ///< Left to right, after cropping.

  friend bool operator==(const Crop&, const Crop&) = default;
};

/// \param echo_pass  how often the sample was used before in this epoch.
constexpr Crop crop_of(const CropPlan& plan, base::PhiloxKey key, std::int64_t sample_id,
                       std::uint32_t echo_pass) noexcept {
  // How far the crop can move in the padded image.
  const auto rows = static_cast<std::uint32_t>(plan.image_height + 2 * plan.padding - plan.height);
  const auto columns = static_cast<std::uint32_t>(plan.image_width + 2 * plan.padding - plan.width);
  std::uint32_t top = rows / 2;
  std::uint32_t left = columns / 2;
  bool flipped = false;
  if (plan.random_crop || plan.flip) {
    const auto id = static_cast<std::uint64_t>(sample_id);
    const base::PhiloxBlock words =
        base::philox4x32({base::low_word(id), base::high_word(id), echo_pass, 0}, key);
    if (plan.random_crop) {
      top = base::high_word(static_cast<std::uint64_t>(words[0]) * (rows + std::uint64_t{1}));
      left = base::high_word(static_cast<std::uint64_t>(words[1]) * (columns + std::uint64_t{1}));
    }
    flipped = plan.flip && (words[2] >> 31) != 0;
  }
  return {static_cast<std::int32_t>(top) - plan.padding,
          static_cast<std::int32_t>(left) - plan.padding, flipped};
}

}  // namespace chunkio::device
