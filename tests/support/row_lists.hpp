/// Lists of row numbers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace chunkio::test {

using Rows = std::vector<std::int64_t>;

inline Rows sorted(Rows rows) {
  std::sort(rows.begin(), rows.end());
  return rows;
}

/// 0 to count - 1.
inline Rows all_rows(std::int64_t count) {
  Rows rows(static_cast<std::size_t>(count));
  std::iota(rows.begin(), rows.end(), std::int64_t{0});
  return rows;
}

}  // namespace chunkio::test
