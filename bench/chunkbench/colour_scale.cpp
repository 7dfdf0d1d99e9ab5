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
constexpr std::array<std::array<std::uint8_t, 3>, 17> kPath = {{{65, 26, 101},
                                                                {66, 44, 117},
                                                                {65, 60, 131},
                                                                {62, 76, 143},
                                                                {53, 93, 150},
                                                                {44, 109, 155},
                                                                {42, 124, 156},
                                                                {35, 140, 158},
                                                                {37, 155, 157},
                                                                {55, 168, 151},
                                                                {73, 182, 146},
                                                                {91, 195, 139},
                                                                {116, 206, 128},
                                                                {146, 216, 114},
                                                                {179, 223, 103},
                                                                {212, 230, 93},
                                                                {243, 235, 86}}};

}  // namespace

std::string colour_at(double goodness) {
  // In finer steps than 128, bytes that are rounded would not grow lighter all the way.
  const double along = std::round(std::clamp(goodness, 0.0, 1.0) * 128) / 8;
  const std::size_t i = std::min(static_cast<std::size_t>(along), kPath.size() - 2);
  const double part = along - static_cast<double>(i);
  std::string text = "#";
  for (std::size_t channel = 0; channel < 3; ++channel) {
    std::array<char, 3> digits{};
    std::snprintf(digits.data(), digits.size(), "%02lx",
                  std::lround((1 - part) * kPath[i][channel] + part * kPath[i + 1][channel]) & 255);
    text += digits.data();
  }
  return text;
}

// Where both have a contrast of sqrt(21):1.
const char* ink_at(double goodness) { return goodness > 0.387 ? "#000" : "#fff"; }

}  // namespace bench
