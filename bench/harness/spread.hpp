/// What is made of a few measurements: median and range, ratios, rates.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include <nlohmann/json.hpp>

namespace bench {

struct Spread {
  double median = 0, lowest = 0, highest = 0;
};

/// \pre `values` is not empty.
inline Spread spread_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  const double median =
      values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
  return {median, values.front(), values.back()};
}

/// `numerators[i] / denominators[i]`, as far as both go.
inline std::vector<double> ratios(std::span<const double> numerators,
                                  std::span<const double> denominators) {
  std::vector<double> values;
  for (std::size_t i = 0; i < std::min(numerators.size(), denominators.size()); ++i) {
    values.push_back(numerators[i] / denominators[i]);
  }
  return values;
}

/// `bytes` in each of `seconds`, as GB/s.
inline std::vector<double> gigabytes_per_second(auto bytes, std::span<const double> seconds) {
  std::vector<double> values;
  for (const double time : seconds) values.push_back(static_cast<double>(bytes) / time / 1e9);
  return values;
}

inline nlohmann::ordered_json to_json(const Spread& spread) {
  return {{"median", spread.median}, {"min", spread.lowest}, {"max", spread.highest}};
}

}  // namespace bench
