#include "chunkbench/number_format.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>

#include "cli/progress_text.hpp"

namespace bench {
namespace {

constexpr int kDigits = 3;

std::string decimals(double value, int digits) {
  // The longest double, 1e308, has 309 digits before the point.
  std::array<char, 330> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

std::string with_separators(std::string digits) {
  const std::size_t whole = std::min(digits.find('.'), digits.size());
  for (std::size_t i = whole; i > 3; i -= 3) digits.insert(i - 3, ",");
  return digits;
}

std::string without_trailing_zeros(std::string text) {
  if (text.find('.') == std::string::npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

/// The value with three significant digits, as a number.
double to_significant(double value) {
  if (value == 0) return 0;
  const double unit = std::pow(10, std::floor(std::log10(value)) - (kDigits - 1));
  return std::round(value / unit) * unit;
}

/// Digits after the point that make three significant ones.
int digits_after_point(double value) {
  if (value == 0) return 0;
  return std::clamp(kDigits - 1 - static_cast<int>(std::floor(std::log10(value))), 0, 12);
}

struct Scaled {
  double value = 0;  // with three significant digits
  std::size_t step = 0;
};

/// Divided by `base` until it is below that, as it will be printed: 999.9 is 1.00 of the next unit.
Scaled scaled(double value, double base, std::size_t steps) {
  Scaled result = {to_significant(value), 0};
  while (result.value >= base && result.step + 1 < steps) {
    value /= base;
    result = {to_significant(value), result.step + 1};
  }
  return result;
}

constexpr std::array<const char*, 7> kPrefixes = {"", "k", "M", "G", "T", "P", "E"};

}  // namespace

std::string rounded(double value) {
  const double shown = to_significant(value);
  return with_separators(without_trailing_zeros(decimals(shown, digits_after_point(shown))));
}

std::string short_si(double value) {
  const Scaled shown = scaled(value, 1000, kPrefixes.size());
  return decimals(shown.value, std::min(digits_after_point(shown.value), shown.step > 0 ? 2 : 1)) +
         kPrefixes[shown.step];
}

std::string si(double value, const std::string& unit) {
  const Scaled shown = scaled(value, 1000, kPrefixes.size());
  return decimals(shown.value, std::min(digits_after_point(shown.value), shown.step > 0 ? 2 : 1)) +
         " " + kPrefixes[shown.step] + unit;
}

std::string spread_text(const Sampled& sampled, std::string (*text)(double),
                        const std::string& unit) {
  const Spread& spread = sampled.spread;
  return text(spread.median) + unit + " (" +
         (sampled.count > 1 ? text(spread.lowest) + " to " + text(spread.highest) + ", " : "") +
         plural(sampled.count, "round") + ")";
}

std::string size_text(std::int64_t bytes) {
  static constexpr std::array<const char*, 7> kUnits = {"B",   "KiB", "MiB", "GiB",
                                                        "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1023.5 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  // 1000 to 1023 have four digits, all of which count.
  return without_trailing_zeros(decimals(value, digits_after_point(to_significant(value)))) + " " +
         kUnits[unit];
}

std::string percent_text(double share) {
  const double from_end = std::min(std::abs(1 - share), share);
  if (from_end == 0 || share >= 9.995) return with_separators(decimals(share * 100, 0)) + " %";
  if (share < 0.00005) return "<0.01 %";
  if (share < 1 && share >= 0.99995) return ">99.99 %";
  return decimals(share * 100, share < 1 && from_end < 0.01 ? 2 : 1) + " %";
}

std::string plural(std::int64_t count, const std::string& noun) {
  return cli::format_count(count) + " " + noun + (count == 1 ? "" : "s");
}

}  // namespace bench
