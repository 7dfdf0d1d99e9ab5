#include "cli/byte_size.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <optional>
#include <string_view>

#include <chunkio/error.hpp>

#include "cli/escape.hpp"

namespace cli {
namespace {

/// Bytes of one unit; nothing for a unit that does not exist.
std::optional<std::int64_t> unit_bytes(std::string_view unit) {
  if (unit.empty() || unit == "b") return 1;
  static constexpr std::string_view kPrefixes = "kmgt";
  const std::size_t power = kPrefixes.find(unit.front());
  if (power == std::string_view::npos) return std::nullopt;
  const std::string_view suffix = unit.substr(1);
  if (!suffix.empty() && suffix != "ib" && suffix != "b") return std::nullopt;
  const std::int64_t base = suffix == "b" ? 1000 : 1024;
  std::int64_t bytes = base;
  for (std::size_t i = 0; i < power; ++i) bytes *= base;
  return bytes;
}

// numerator * unit stays below 1e6 * 2^40 < 2^63.
constexpr std::int64_t kMaxDenominator = 1'000'000;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_blank(char c) { return c == ' ' || c == '\t'; }

std::optional<std::int64_t> parse(std::string_view text) {
  std::int64_t whole = 0;
  std::size_t at = 0;
  for (; at < text.size() && is_digit(text[at]); ++at) {
    if (__builtin_mul_overflow(whole, 10, &whole) ||
        __builtin_add_overflow(whole, text[at] - '0', &whole)) {
      return std::nullopt;
    }
  }
  if (at == 0) return std::nullopt;

  // The fraction is numerator / denominator; digits past the sixth are cut off.
  std::int64_t numerator = 0;
  std::int64_t denominator = 1;
  if (at < text.size() && text[at] == '.') {
    const std::size_t point = at++;
    for (; at < text.size() && is_digit(text[at]); ++at) {
      if (denominator == kMaxDenominator) continue;
      numerator = numerator * 10 + (text[at] - '0');
      denominator *= 10;
    }
    if (at == point + 1) return std::nullopt;
  }

  while (at < text.size() && is_blank(text[at])) ++at;
  std::string unit(text.substr(at));
  std::transform(unit.begin(), unit.end(), unit.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const std::optional<std::int64_t> factor = unit_bytes(unit);
  if (!factor || (*factor == 1 && numerator != 0)) return std::nullopt;

  std::int64_t bytes = 0;
  const std::int64_t rest = numerator * *factor / denominator;
  if (__builtin_mul_overflow(whole, *factor, &bytes) ||
      __builtin_add_overflow(bytes, rest, &bytes)) {
    return std::nullopt;
  }
  return bytes;
}

}  // namespace

std::int64_t parse_byte_size(const std::string& text) {
  if (const std::optional<std::int64_t> bytes = parse(text)) return *bytes;
  throw chunkio::Error(chunkio::ErrorCode::invalid_argument,
                       "'" + escape(text) +
                           "' is not a size; write a number of bytes (up to 2^63 - 1) or a number "
                           "with a unit, such as 65536, 64KiB, 64MiB, 1.5GiB or 1GB");
}

std::string format_bytes(std::int64_t bytes) {
  static constexpr std::array<const char*, 6> kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return std::to_string(bytes) + " B";
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  // 1023.95 would print as 1024.0.
  for (; value >= 1023.95 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  std::array<char, 32> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%.1f %s", value, kUnits[unit]);
  return buffer.data();
}

}  // namespace cli
