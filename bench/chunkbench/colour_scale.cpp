#include "chunkbench/colour_scale.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>

namespace bench {
namespace {

/// Points at equal distances in OKLab (B. Ottosson, "A perceptual color space for image
/// processing", 2020) along a path through OKLCh: lightness 0.32 to 0.92, hue 304 to 106 degrees.
/// They are near enough to each other for straight lines in sRGB.
constexpr std::array<Colour, 17> kPath = {{{65, 26, 101},
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

std::string Colour::hex() const {
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), "#%02x%02x%02x", red, green, blue);
  return text.data();
}

Colour colour_at(double position) {
  // In finer steps, bytes that are rounded would not grow lighter all the way.
  constexpr double kSteps = 128;
  const double step = std::round(std::clamp(position, 0.0, 1.0) * kSteps) / kSteps;
  const double along = step * static_cast<double>(kPath.size() - 1);
  const std::size_t i = std::min(static_cast<std::size_t>(along), kPath.size() - 2);
  const auto between = [part = along - static_cast<double>(i)](double from, double to) {
    return static_cast<std::uint8_t>(std::lround(from + part * (to - from)));
  };
  const Colour& from = kPath[i];
  const Colour& to = kPath[i + 1];
  return {between(from.red, to.red), between(from.green, to.green), between(from.blue, to.blue)};
}

double luminance(Colour colour) {
  const auto linear = [](std::uint8_t byte) {
    const double channel = byte / 255.0;
    return channel <= 0.04045 ? channel / 12.92 : std::pow((channel + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * linear(colour.red) + 0.7152 * linear(colour.green) + 0.0722 * linear(colour.blue);
}

Colour ink_on(Colour background) {
  // Here black and white have the same contrast, sqrt(21):1.
  const double middle = std::sqrt(0.05 * 1.05) - 0.05;
  return luminance(background) > middle ? Colour{0, 0, 0} : Colour{255, 255, 255};
}

ValueColours::ValueColours(double lowest, double highest, Better better, Steps steps)
    : lowest_(lowest), highest_(highest), better_(better), steps_(steps) {}

double ValueColours::place(double value) const {
  // All alike: as good as it gets.
  if (!(highest_ > lowest_)) return better_ == Better::more ? 1 : 0;
  const double clamped = std::clamp(value, lowest_, highest_);
  return steps_ == Steps::ratios ? std::log(clamped / lowest_) / std::log(highest_ / lowest_)
                                 : (clamped - lowest_) / (highest_ - lowest_);
}

}  // namespace bench
