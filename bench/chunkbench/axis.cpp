#include "axis.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace bench {
namespace {

constexpr double kWantedSteps = 5;
/// Of an axis, that a tick may lie outside its ends by rounding; of a value, below which two are
/// one.
constexpr double kSlack = 1e-9;
/// Far above the smallest number that has all its digits.
constexpr double kSmallest = 1e-290;

/// 1, 2 or 5 times a power of ten, not below `step`.
double round_step(double step) {
  const double power = std::pow(10, std::floor(std::log10(step)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= step * (1 - kSlack)) return factor * power;
  }
  return 10 * power;
}

std::vector<double> multiples(double lowest, double highest, const std::vector<double>& factors) {
  std::vector<double> values;
  const int first = static_cast<int>(std::floor(std::log10(lowest)));
  const int last = static_cast<int>(std::ceil(std::log10(highest)));
  for (int exponent = first; exponent <= last; ++exponent) {
    for (const double factor : factors) {
      const double value = factor * std::pow(10, exponent);
      if (value >= lowest * (1 - kSlack) && value <= highest * (1 + kSlack)) {
        values.push_back(value);
      }
    }
  }
  return values;
}

}  // namespace

Axis Axis::linear(double lowest, double highest) {
  Axis axis;
  const double scale = std::max(std::abs(lowest), std::abs(highest));
  if (!(highest - lowest > std::max(kSlack * scale, kSmallest))) {
    // One value: an axis around it, from 0 where that is near.
    const double size = std::max(std::abs(highest), 1e-12);
    lowest -= lowest == 0 ? 0 : size / 2;
    highest += size / 2;
  }
  const double step = round_step((highest - lowest) / kWantedSteps);
  const double first = std::floor(lowest / step + kSlack);
  const double last = std::ceil(highest / step - kSlack);
  axis.lowest_ = first * step;
  axis.highest_ = last * step;
  const auto steps = static_cast<int>(last - first);
  for (int i = 0; i <= steps; ++i) axis.ticks_.push_back((first + i) * step);
  return axis;
}

Axis Axis::logarithmic(double lowest, double highest) {
  Axis axis;
  axis.logarithmic_ = true;
  if (highest / lowest < 1 + kSlack) {
    lowest /= 1.5;
    highest *= 1.5;
  }
  axis.lowest_ = lowest;
  axis.highest_ = highest;
  // As many values as fit: every digit within a decade, one every few decades beyond.
  static const std::array<std::vector<double>, 4> kFactors = {
      {{1}, {1, 3}, {1, 2, 5}, {1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9}}};
  for (const std::vector<double>& factors : kFactors) {
    axis.ticks_ = multiples(lowest, highest, factors);
    if (axis.ticks_.size() >= 4) break;
  }
  while (axis.ticks_.size() > 8) {
    std::vector<double> fewer;
    for (std::size_t i = 0; i < axis.ticks_.size(); i += 2) fewer.push_back(axis.ticks_[i]);
    axis.ticks_ = fewer;
  }
  if (axis.ticks_.size() < 2) axis.ticks_ = {lowest, highest};
  return axis;
}

double Axis::place(double value) const {
  if (logarithmic_) return std::log(value / lowest_) / std::log(highest_ / lowest_);
  return (value - lowest_) / (highest_ - lowest_);
}

}  // namespace bench
