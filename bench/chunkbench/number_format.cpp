#include "chunkbench/number_format.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>

#include "cli/byte_size.hpp"
#include "cli/progress_text.hpp"

namespace bench {
namespace {

std::string decimals(double value, int digits) {
  // The longest double, 1e308, has 309 digits before the point.
  std::array<char, 330> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

}  // namespace

std::string rounded(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3g", value);
  const double shown = std::strtod(text.data(), nullptr);
  return shown >= 1000 && shown < 1e15 ? cli::format_count(std::llround(shown)) : text.data();
}

std::string si(double value, const std::string& unit) {
  constexpr std::array<const char*, 7> kPrefixes = {"", "k", "M", "G", "T", "P", "E"};
  std::size_t step = 0;
  // As it will be printed: 999.9 is 1.00 of the next unit.
  for (; value >= 999.5 && step + 1 < kPrefixes.size(); ++step) value /= 1000;
  const int digits = value == 0 || value >= 99.95 ? 0 : value >= 9.995 || step == 0 ? 1 : 2;
  return decimals(value, digits) + (unit.empty() ? "" : " ") + kPrefixes[step] + unit;
}

std::string spread_text(const Sampled& sampled, std::string (*text)(double),
                        const std::string& unit) {
  const Spread& spread = sampled.spread;
  return text(spread.median) + unit + " (" +
         (sampled.count > 1 ? text(spread.lowest) + " to " + text(spread.highest) + ", " : "") +
         plural(sampled.count, "round") + ")";
}

std::string size_text(std::int64_t bytes) {
  std::string text = cli::format_bytes(bytes);
  if (const std::size_t at = text.find(".0 "); at != std::string::npos) text.erase(at, 2);
  return text;
}

std::string percent_text(double share) {
  const double from_end = std::min(std::abs(1 - share), share);
  if (from_end == 0 || share >= 9.995) return rounded(share * 100) + " %";
  if (share < 0.00005) return "<0.01 %";
  if (share < 1 && share >= 0.99995) return ">99.99 %";
  return decimals(share * 100, share < 1 && from_end < 0.01 ? 2 : 1) + " %";
}

std::string plural(std::int64_t count, const std::string& noun) {
  return cli::format_count(count) + " " + noun + (count == 1 ? "" : "s");
}

}  // namespace bench
