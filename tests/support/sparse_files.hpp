/// Files with the sparse matrix of tests/scripts/make_sparse_file.py.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <chunkio/tensor.hpp>

#include "support/h5_files.hpp"
#include "support/scratch.hpp"

namespace chunkio::test {

inline constexpr std::int64_t kSparseRows = 230;
inline constexpr std::int64_t kSparseColumns = 50;

/// Columns of the values of a row.
inline std::vector<std::int64_t> sparse_columns(std::int64_t row) {
  std::vector<std::int64_t> columns;
  const std::int64_t count = row == 17 ? kSparseColumns : 7 * row % 11;
  for (std::int64_t j = 0; j < count; ++j) {
    columns.push_back(row == 17 ? j : (5 * j + 3 * row) % kSparseColumns);
  }
  std::sort(columns.begin(), columns.end());
  return columns;
}
inline double sparse_value(std::int64_t row, std::int64_t column) {
  return static_cast<double>(100 * row + column);
}

/// Element `i` of a tensor of whatever numbers.
inline double number_at(const Tensor& tensor, std::int64_t i) {
  const auto at = static_cast<std::size_t>(i);
  switch (tensor.dtype()) {
    case DType::int32:
      return tensor.values<std::int32_t>()[at];
    case DType::int64:
      return static_cast<double>(tensor.values<std::int64_t>()[at]);
    case DType::uint16:
      return tensor.values<std::uint16_t>()[at];
    case DType::float64:
      return tensor.values<double>()[at];
    default:
      return static_cast<double>(tensor.values<float>()[at]);
  }
}

/// Checks that row `i` of `rows` is row `row` of the matrix.
inline void expect_sparse_row(const SparseTensor& rows, std::int64_t i, std::int64_t row) {
  const std::vector<std::int64_t> columns = sparse_columns(row);
  const auto begin = static_cast<std::int64_t>(number_at(rows.indptr, i));
  ASSERT_EQ(number_at(rows.indptr, i + 1) - number_at(rows.indptr, i),
            static_cast<double>(columns.size()))
      << "row " << row;
  for (std::size_t k = 0; k < columns.size(); ++k) {
    const std::int64_t at = begin + static_cast<std::int64_t>(k);
    ASSERT_EQ(number_at(rows.indices, at), static_cast<double>(columns[k])) << "row " << row;
    ASSERT_EQ(number_at(rows.values, at), sparse_value(row, columns[k])) << "row " << row;
  }
}

inline std::string sparse_file(const ScratchFolder& folder, const std::string& name,
                               const std::string& file = "") {
  std::string path = folder.file(file.empty() ? name + ".h5" : file);
  EXPECT_EQ(run_script("make_sparse_file.py", name + " '" + path + "'"), 0);
  return path;
}

}  // namespace chunkio::test
