#include "advice/quantities.hpp"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <iterator>

namespace chunkio::advice {

std::string number(const char* format, double value) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

std::string percent(double share) {
  return std::to_string(static_cast<int>(std::lround(100 * share))) + " %";
}

std::string byte_rate(double bytes_per_second) {
  if (bytes_per_second >= 1e9) return number("%.2f GB/s", bytes_per_second / 1e9);
  return number(bytes_per_second < 10e6 ? "%.1f MB/s" : "%.0f MB/s", bytes_per_second / 1e6);
}

std::string bytes_text(double bytes) {
  constexpr const char* kUnits[] = {" bytes", " KiB", " MiB", " GiB", " TiB"};
  std::size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < std::size(kUnits)) {
    bytes /= 1024;
    ++unit;
  }
  return number(unit == 0 ? "%.0f" : "%.1f", bytes) + kUnits[unit];
}

std::string kibibytes(std::int64_t bytes) {
  return number("%.0f KiB", std::ceil(static_cast<double>(bytes) / 1024));
}

std::string milliseconds(double seconds) { return number("%.3g ms", 1000 * seconds); }

std::string factor_text(double factor) { return number(factor < 10 ? "%.3gx" : "%.0fx", factor); }

std::string count_text(double count, const char* noun) {
  return number("%.0f ", count) + noun + (count == 1 ? "" : "s");
}

}  // namespace chunkio::advice
