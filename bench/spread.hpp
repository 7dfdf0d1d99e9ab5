/// Median and range of a few measurements.
#pragma once

#include <algorithm>
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

inline nlohmann::ordered_json to_json(const Spread& spread) {
  return {{"median", spread.median}, {"min", spread.lowest}, {"max", spread.highest}};
}

}  // namespace bench
