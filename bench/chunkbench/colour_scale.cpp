#include "colour_scale.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <numbers>

namespace bench {
namespace {

using Triple = std::array<double, 3>;

double to_linear(double channel) {
  return channel <= 0.04045 ? channel / 12.92 : std::pow((channel + 0.055) / 1.055, 2.4);
}

double from_linear(double channel) {
  return channel <= 0.0031308 ? channel * 12.92 : 1.055 * std::pow(channel, 1 / 2.4) - 0.055;
}

Triple linear_rgb(Colour colour) {
  return {to_linear(colour.red / 255.0), to_linear(colour.green / 255.0),
          to_linear(colour.blue / 255.0)};
}

/// The matrices of the publication.
Triple oklab_to_linear_rgb(const Triple& lab) {
  const auto cube = [](double x) { return x * x * x; };
  const double l = cube(lab[0] + 0.3963377774 * lab[1] + 0.2158037573 * lab[2]);
  const double m = cube(lab[0] - 0.1055613458 * lab[1] - 0.0638541728 * lab[2]);
  const double s = cube(lab[0] - 0.0894841775 * lab[1] - 1.2914855480 * lab[2]);
  return {4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
          -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
          -0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s};
}

/// Lightness, chroma, hue in degrees: points that the path goes through.
struct Stop {
  double lightness, chroma, hue;
};
constexpr std::array<Stop, 6> kStops = {{{0.32, 0.125, 304},
                                         {0.44, 0.110, 272},
                                         {0.56, 0.090, 225},
                                         {0.68, 0.105, 175},
                                         {0.80, 0.150, 140},
                                         {0.92, 0.165, 106}}};

Triple lab_between(double t) {
  const double along = t * static_cast<double>(kStops.size() - 1);
  const std::size_t i = std::min(static_cast<std::size_t>(along), kStops.size() - 2);
  const double part = along - static_cast<double>(i);
  const auto mix = [part](double from, double to) { return from + part * (to - from); };
  const double chroma = mix(kStops[i].chroma, kStops[i + 1].chroma);
  const double hue = mix(kStops[i].hue, kStops[i + 1].hue) * std::numbers::pi / 180;
  return {mix(kStops[i].lightness, kStops[i + 1].lightness), chroma * std::cos(hue),
          chroma * std::sin(hue)};
}

double distance(const Triple& a, const Triple& b) {
  return std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
}

constexpr std::size_t kPathPoints = 1'025;
constexpr std::size_t kColours = 257;

/// Colours at equal distances along the path.
std::array<Colour, kColours> make_colours() {
  std::array<double, kPathPoints> length{};
  const auto point = [](std::size_t i) {
    return lab_between(static_cast<double>(i) / (kPathPoints - 1));
  };
  for (std::size_t i = 1; i < kPathPoints; ++i) {
    length[i] = length[i - 1] + distance(point(i - 1), point(i));
  }
  std::array<Colour, kColours> colours{};
  std::size_t i = 1;
  for (std::size_t c = 0; c < kColours; ++c) {
    const double wanted = length.back() * static_cast<double>(c) / (kColours - 1);
    while (i + 1 < kPathPoints && length[i] < wanted) ++i;
    const double part = (wanted - length[i - 1]) / (length[i] - length[i - 1]);
    const double t = (static_cast<double>(i - 1) + part) / (kPathPoints - 1);
    const Triple rgb = oklab_to_linear_rgb(lab_between(std::clamp(t, 0.0, 1.0)));
    const auto byte = [](double channel) {
      return static_cast<std::uint8_t>(
          std::lround(255 * from_linear(std::clamp(channel, 0.0, 1.0))));
    };
    colours[c] = {byte(rgb[0]), byte(rgb[1]), byte(rgb[2])};
  }
  return colours;
}

double luminance(Colour colour) {
  const Triple rgb = linear_rgb(colour);
  return 0.2126 * rgb[0] + 0.7152 * rgb[1] + 0.0722 * rgb[2];
}

}  // namespace

std::string Colour::hex() const {
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), "#%02x%02x%02x", red, green, blue);
  return text.data();
}

Colour colour_at(double position) {
  static const std::array<Colour, kColours> colours = make_colours();
  const double clamped = std::clamp(position, 0.0, 1.0);
  return colours[static_cast<std::size_t>(std::lround(clamped * (kColours - 1)))];
}

double contrast(Colour one, Colour other) {
  const double a = luminance(one) + 0.05;
  const double b = luminance(other) + 0.05;
  return std::max(a, b) / std::min(a, b);
}

Colour ink_on(Colour background) {
  const Colour black = {0, 0, 0};
  const Colour white = {255, 255, 255};
  return contrast(black, background) > contrast(white, background) ? black : white;
}

Triple oklab(Colour colour) {
  const Triple rgb = linear_rgb(colour);
  const double l = std::cbrt(0.4122214708 * rgb[0] + 0.5363325363 * rgb[1] + 0.0514459929 * rgb[2]);
  const double m = std::cbrt(0.2119034982 * rgb[0] + 0.6806995451 * rgb[1] + 0.1073969566 * rgb[2]);
  const double s = std::cbrt(0.0883024619 * rgb[0] + 0.2817188376 * rgb[1] + 0.6299787005 * rgb[2]);
  return {0.2104542553 * l + 0.7936177850 * m - 0.0040720468 * s,
          1.9779984951 * l - 2.4285922050 * m + 0.4505937099 * s,
          0.0259040371 * l + 0.7827717662 * m - 0.8086757660 * s};
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

double ValueColours::value_at(double place) const {
  return steps_ == Steps::ratios ? lowest_ * std::pow(highest_ / lowest_, place)
                                 : lowest_ + place * (highest_ - lowest_);
}

}  // namespace bench
