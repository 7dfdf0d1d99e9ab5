/// Sizes of images, and the options that make a sample of one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <chunkio/tensor.hpp>

namespace h5pack {

/// In pixels.
struct ImageSize {
  std::int64_t height = 0;
  std::int64_t width = 0;

  [[nodiscard]] std::int64_t pixels() const noexcept { return height * width; }
  friend bool operator==(const ImageSize&, const ImageSize&) = default;
};

/// "218x178": height, then width, as all size options are written.
[[nodiscard]] std::string to_string(ImageSize size);

/// Parses "HxW" ("218x178").
/// \throws Error invalid_argument unless both are in 1..65535.
[[nodiscard]] ImageSize parse_image_size(const std::string& text);

enum class ColorMode : std::uint8_t { rgb, gray };
enum class OrientationMode : std::uint8_t { ignore, apply };
enum class Interpolation : std::uint8_t { nearest, bilinear, bicubic, area, lanczos };

/// "area".
[[nodiscard]] std::string to_string(Interpolation interpolation);
/// The words for them.
[[nodiscard]] const std::vector<std::pair<std::string, Interpolation>>& interpolations();

/// Either the length of the shorter side (aspect ratio kept), or a size that every image is
/// brought to.
struct Resize {
  std::int64_t shorter_side = 0;  ///< 0: `size` holds.
  ImageSize size;
};

/// Parses "S" or "HxW".
/// \throws Error invalid_argument.
[[nodiscard]] Resize parse_resize(const std::string& text);

/// Images above this many pixels are refused unless told otherwise (Pillow refuses at the same
/// number).
inline constexpr std::int64_t kDefaultMaxPixels = 178'956'970;
/// The most that may be allowed: OpenCV decodes nothing larger.
inline constexpr std::int64_t kHighestMaxPixels = std::int64_t{1} << 30;

/// Applied in this order: orientation, color, resize, then crop or pad.
struct ImageOptions {
  /// The largest image that is decoded, in pixels, 1..kHighestMaxPixels. A file of a few hundred
  /// bytes can declare gigabytes; what is above is refused before memory is taken.
  std::int64_t max_pixels = kDefaultMaxPixels;
  /// Let libjpeg shrink JPEG files by 2, 4 or 8 while it decodes, as far as `resize` shrinks them
  /// anyway. Faster, but pixels differ from decoding whole and resizing then.
  bool shrink_on_load = false;
  OrientationMode orientation = OrientationMode::ignore;
  ColorMode color = ColorMode::rgb;
  std::optional<Resize> resize;
  Interpolation interpolation = Interpolation::area;
  std::optional<ImageSize> center_crop;
  std::optional<ImageSize> pad;  ///< Centred on black; not together with center_crop.
  chunkio::Layout layout = chunkio::Layout::nhwc;

  [[nodiscard]] std::int64_t channels() const noexcept { return color == ColorMode::rgb ? 3 : 1; }
};

/// Brightness of an RGB pixel, ITU-R 601 in 16-bit fixed point as Pillow's convert("L") computes
/// it.
[[nodiscard]] constexpr std::uint8_t luma(std::uint8_t red, std::uint8_t green,
                                          std::uint8_t blue) noexcept {
  return static_cast<std::uint8_t>((red * 19595U + green * 38470U + blue * 7471U + 0x8000U) >> 16);
}

/// Writes a pixel in the wanted colour, and moves `target` behind it.
constexpr void put_pixel(std::uint8_t red, std::uint8_t green, std::uint8_t blue, ColorMode color,
                         std::uint8_t*& target) noexcept {
  if (color == ColorMode::gray) {
    *target++ = luma(red, green, blue);
  } else {
    *target++ = red;
    *target++ = green;
    *target++ = blue;
  }
}

}  // namespace h5pack
