/// What is cut out of an image and resized: libchunkio/doc/order.md, section 12.
///
/// The geometry is that of torchvision's RandomResizedCrop, Resize and CenterCrop. It is integer
/// arithmetic without functions whose last bits differ between machines, so that every processor
/// and every second implementation gets the same crops.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include <chunkio/dataset.hpp>

#include "base/philox.hpp"
#include "base/require.hpp"

namespace chunkio::image {

/// The largest side of an image, in pixels: that of a JPEG file.
inline constexpr std::int32_t kMaxSide = 65535;

/// In pixels.
struct Size {
  std::int32_t height = 0;
  std::int32_t width = 0;

  friend bool operator==(const Size&, const Size&) = default;
};

/// In pixels: rows [top, top + height), columns [left, left + width).
struct Box {
  std::int32_t top = 0;
  std::int32_t left = 0;
  std::int32_t height = 0;
  std::int32_t width = 0;

  friend bool operator==(const Box&, const Box&) = default;
};

/// What of an image becomes the output: `box` is cut out, resized to `resized` as if nothing were
/// around it, and of that `window` is kept, left to right if `flipped`.
struct ResizedCrop {
  Box box;
  Size resized;
  Box window;
  bool flipped = false;

  friend bool operator==(const ResizedCrop&, const ResizedCrop&) = default;
};

/// Whether a sample is flipped left to right, under the key of its epoch: as section 10 has it.
/// \param echo_pass  how often the sample was used before in this epoch.
constexpr bool is_flipped(base::PhiloxKey key, std::int64_t sample_id,
                          std::uint32_t echo_pass) noexcept {
  const auto id = static_cast<std::uint64_t>(sample_id);
  return base::philox4x32({base::low_word(id), base::high_word(id), echo_pass, 0}, key)[2] >> 31 !=
         0;
}

/// The largest number whose square is at most `value`.
constexpr std::uint64_t floor_sqrt(std::uint64_t value) noexcept {
  std::uint64_t root = 0;
  for (std::uint64_t bit = std::uint64_t{1} << 62; bit != 0; bit >>= 2) {
    const bool is_set = value >= root + bit;
    value -= is_set ? root + bit : 0;
    root = (root >> 1) + (is_set ? bit : 0);
  }
  return root;
}

/// The ranges that boxes are drawn from, in fixed point.
struct RandomResizedCrop {
  std::uint64_t min_scale = 0;  ///< Of the box's area in that of the image; 2^32 is all of it.
  std::uint64_t max_scale = 0;
  std::uint32_t min_ratio = 0;  ///< Of the box's width to its height; 2^24 is a square.
  std::uint32_t max_ratio = 0;
};

inline constexpr double kMaxRatio = 64;

/// \throws Error invalid_argument unless 0 <= min_scale <= max_scale <= 1, max_scale > 0, and 1 /
///         kMaxRatio <= min_ratio <= max_ratio <= kMaxRatio.
inline RandomResizedCrop random_resized_crop_ranges(const ResizedCropRanges& ranges) {
  const auto& [min_scale, max_scale, min_ratio, max_ratio] = ranges;
  base::require(
      0 <= min_scale && min_scale <= max_scale && 0 < max_scale && max_scale <= 1,
      "the scale of a random resized crop is a range within 0 to 1, like 0.08 to 1, not " +
          std::to_string(min_scale) + " to " + std::to_string(max_scale));
  base::require(
      1 / kMaxRatio <= min_ratio && min_ratio <= max_ratio && max_ratio <= kMaxRatio,
      "the ratio of a random resized crop is a range within 1/64 to 64, like 3/4 to 4/3, not " +
          std::to_string(min_ratio) + " to " + std::to_string(max_ratio));
  // Products with powers of two are exact, so these are rounded once.
  const auto fixed = [](double value, int bits) {
    return std::floor(std::ldexp(value, bits) + 0.5);
  };
  return {static_cast<std::uint64_t>(fixed(min_scale, 32)),
          static_cast<std::uint64_t>(fixed(max_scale, 32)),
          static_cast<std::uint32_t>(fixed(min_ratio, 24)),
          static_cast<std::uint32_t>(fixed(max_ratio, 24))};
}

/// Log-uniform in the range of ratios: eight times the half on one side of the geometric mean, then
/// linear within what is left.
constexpr std::uint32_t ratio_at(const RandomResizedCrop& ranges, std::uint32_t word) noexcept {
  std::uint64_t low = ranges.min_ratio;
  std::uint64_t high = ranges.max_ratio;
  for (int bit = 31; bit >= 24; --bit) {
    const std::uint64_t middle = floor_sqrt(low * high);
    (word >> bit & 1) != 0 ? low = middle : high = middle;
  }
  return static_cast<std::uint32_t>(low + ((high - low) * (word & 0xFFFFFF) >> 24));
}

/// sqrt(quarter / 4), rounded to the nearest.
constexpr std::uint64_t rounded_half_sqrt(std::uint64_t quarter) noexcept {
  return (floor_sqrt(quarter) + 1) >> 1;
}

/// The box of torchvision's RandomResizedCrop for one sample: ten attempts, then the largest
/// central box whose ratio is in the range.
/// \param image  sides of 1 to kMaxSide.
/// \param key  augmentation_key() of the epoch.
/// \param echo_pass  how often the sample was used before in this epoch.
constexpr Box random_box(const RandomResizedCrop& ranges, Size image, base::PhiloxKey key,
                         std::int64_t sample_id, std::uint32_t echo_pass) noexcept {
  constexpr std::uint32_t kAttempts = 10;
  const auto height = static_cast<std::uint64_t>(image.height);
  const auto width = static_cast<std::uint64_t>(image.width);
  const auto box_of = [](std::uint64_t top, std::uint64_t left, std::uint64_t rows,
                         std::uint64_t columns) {
    return Box{static_cast<std::int32_t>(top), static_cast<std::int32_t>(left),
               static_cast<std::int32_t>(rows), static_cast<std::int32_t>(columns)};
  };
  const auto id = static_cast<std::uint64_t>(sample_id);
  for (std::uint32_t block = 1; block <= kAttempts; ++block) {
    const base::PhiloxBlock words =
        base::philox4x32({base::low_word(id), base::high_word(id), echo_pass, block}, key);
    const std::uint64_t scale =
        ranges.min_scale + base::high_word(words[0] * (ranges.max_scale - ranges.min_scale));
    const std::uint64_t ratio = ratio_at(ranges, words[1]);
    const std::uint64_t area = height * width * scale;  // 2^32 is a pixel
    const std::uint64_t columns = rounded_half_sqrt(
        static_cast<std::uint64_t>(static_cast<base::Uint128>(area) * ratio >> 54));
    const std::uint64_t rows = rounded_half_sqrt(area / (ratio << 6));
    if (rows == 0 || rows > height || columns == 0 || columns > width) continue;
    return box_of(base::high_word(words[2] * (height - rows + 1)),
                  base::high_word(words[3] * (width - columns + 1)), rows, columns);
  }
  std::uint64_t rows = height;
  std::uint64_t columns = width;
  const std::uint64_t ratio = width << 24;
  if (ratio < ranges.min_ratio * height) {
    rows = ((width << 25) / ranges.min_ratio + 1) >> 1;
  } else if (ratio > ranges.max_ratio * height) {
    columns = ((height * ranges.max_ratio >> 23) + 1) >> 1;
  }
  rows += rows == 0 ? 1 : 0;
  columns += columns == 0 ? 1 : 0;
  return box_of((height - rows) / 2, (width - columns) / 2, rows, columns);
}

/// The whole of a box, resized.
constexpr ResizedCrop resized(Box box, Size output) noexcept {
  return {box, output, {0, 0, output.height, output.width}, false};
}

/// torchvision's Resize(side): the shorter side becomes `side`, and the longer one keeps the
/// ratio, rounded down.
constexpr std::int64_t resized_longer_side(std::int64_t longer, std::int64_t shorter,
                                           std::int64_t side) noexcept {
  return side * longer / shorter;
}

/// torchvision's CenterCrop: where a crop begins in a side, rounded to even where it lies between
/// two pixels.
constexpr std::int32_t center_crop_begin(std::int32_t side, std::int32_t crop) noexcept {
  const std::int32_t half = (side - crop) / 2;
  return (side - crop) % 2 == 0 ? half : half + half % 2;
}

/// torchvision's Resize(side), then CenterCrop(crop). Of the image are read the rows and columns
/// that the crop needs.
/// \param image  sides of 1 to kMaxSide.
/// \throws Error invalid_argument if the resized image is smaller than the crop (torchvision would
///         pad it), or has a side above kMaxSide.
inline ResizedCrop resize_shorter_side_and_center_crop(Size image, std::int32_t side, Size crop) {
  const bool is_upright = image.height >= image.width;
  const std::int64_t longer = is_upright ? resized_longer_side(image.height, image.width, side)
                                         : resized_longer_side(image.width, image.height, side);
  const auto text = [](std::int64_t height, std::int64_t width) {
    return std::to_string(height) + "x" + std::to_string(width);
  };
  base::require(longer <= kMaxSide, "an image of " + text(image.height, image.width) +
                                        " pixels whose shorter side becomes " +
                                        std::to_string(side) + " has a longer side of " +
                                        std::to_string(longer) +
                                        ", above 65535; take such an image whole, or a random part "
                                        "of it");
  const auto rest = static_cast<std::int32_t>(longer);
  const Size resized = is_upright ? Size{rest, side} : Size{side, rest};
  base::require(crop.height <= resized.height && crop.width <= resized.width,
                "a crop of " + text(crop.height, crop.width) + " does not fit into an image of " +
                    text(image.height, image.width) + " resized to " +
                    text(resized.height, resized.width) +
                    "; resize the shorter side to more pixels, or crop fewer");
  return {{0, 0, image.height, image.width},
          resized,
          {center_crop_begin(resized.height, crop.height),
           center_crop_begin(resized.width, crop.width), crop.height, crop.width},
          false};
}

}  // namespace chunkio::image
