#include "chunkbench/colour_scale.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>

namespace bench {
namespace {

/// Points at equal distances in OKLab (B. Ottosson, "A perceptual color space for image
/// processing", 2020) along a path through OKLCh: lightness 0.32 to 0.92, hue 304 to 106 degrees.
/// They are near enough to each other for straight lines in sRGB.
constexpr std::array<std::uint32_t, 17> kPath = {
    0x411a65, 0x422c75, 0x413c83, 0x3e4c8f, 0x355d96, 0x2c6d9b, 0x2a7c9c, 0x238c9e, 0x259b9d,
    0x37a897, 0x49b692, 0x5bc38b, 0x74ce80, 0x92d872, 0xb3df67, 0xd4e65d, 0xf3eb56};

}  // namespace

std::string colour_at(double goodness) {
  // In finer steps than 128, bytes that are rounded would not grow lighter all the way.
  const double along = std::round(std::clamp(goodness, 0.0, 1.0) * 128) / 8;
  const std::size_t i = std::min(static_cast<std::size_t>(along), kPath.size() - 2);
  const double part = along - static_cast<double>(i);
  std::uint32_t colour = 0;
  for (const int shift : {16, 8, 0}) {
    const auto channel = [shift](std::uint32_t of) {
      return static_cast<double>(of >> shift & 255U);
    };
    const double mixed = (1 - part) * channel(kPath[i]) + part * channel(kPath[i + 1]);
    colour = colour << 8U | static_cast<std::uint32_t>(std::lround(mixed));
  }
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), "#%06x", colour & 0xffffffU);
  return text.data();
}

// Where both have a contrast of sqrt(21):1.
const char* ink_at(double goodness) { return goodness > 0.387 ? "#000" : "#fff"; }

}  // namespace bench
