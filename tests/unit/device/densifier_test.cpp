// Rows of a CSR matrix made dense.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <chunkio/normalizer.hpp>

#include "device/value.hpp"
#include "support/errors.hpp"

namespace chunkio {
namespace {

using test::expect_error;

template <class Value = float, class Index = std::int32_t>
struct Matrix {
  std::vector<Index> indptr = {0};
  std::vector<Index> indices = {};
  std::vector<Value> values = {};
  std::int64_t columns = 0;

  void add_row(const std::vector<std::pair<Index, Value>>& row) {
    for (const auto& [column, value] : row) {
      indices.push_back(column);
      values.push_back(value);
    }
    indptr.push_back(static_cast<Index>(indices.size()));
  }
  [[nodiscard]] SparseTensor tensor() const {
    const auto view = [](const auto& numbers) {
      using T = typename std::decay_t<decltype(numbers)>::value_type;
      return Tensor(reinterpret_cast<const std::byte*>(numbers.data()), dtype_of<T>(),
                    Shape{std::ssize(numbers)});
    };
    return {view(indptr), view(indices), view(values), columns};
  }
};

template <class Value = float, class Index = std::int32_t>
Matrix<Value, Index> random_matrix(std::int64_t rows, std::int64_t columns, double density,
                                   std::uint32_t seed) {
  std::mt19937 random(seed);
  std::bernoulli_distribution is_there(density);
  Matrix<Value, Index> matrix{.columns = columns};
  for (std::int64_t row = 0; row < rows; ++row) {
    std::vector<std::pair<Index, Value>> values;
    for (std::int64_t column = 0; column < columns; ++column) {
      if (is_there(random)) {
        values.emplace_back(static_cast<Index>(column), static_cast<Value>(1 + random() % 100));
      }
    }
    matrix.add_row(values);
  }
  return matrix;
}

/// The output, in memory that begins `shift` bytes behind a cache line; everything around must
/// stay.
template <class T>
std::vector<T> dense(const Densifier& densify, const SparseTensor& rows, std::size_t shift = 0) {
  constexpr std::size_t kLine = 64;
  constexpr std::byte kUntouched{0xA5};
  const std::size_t size = densify.output_bytes(rows.rows());
  std::vector<std::byte> memory(size + 3 * kLine, kUntouched);
  const std::size_t to_line =
      kLine - reinterpret_cast<std::uintptr_t>(memory.data()) % kLine + shift;
  densify(rows, std::span(memory).subspan(to_line, size));
  for (std::size_t i = 0; i < memory.size(); ++i) {
    if (i < to_line || i >= to_line + size) {
      EXPECT_EQ(memory[i], kUntouched) << i;
    }
  }
  std::vector<T> values(size / sizeof(T));
  if (size > 0) std::memcpy(values.data(), memory.data() + to_line, size);
  return values;
}

template <class Value, class Index>
std::vector<float> expected(const Matrix<Value, Index>& matrix) {
  const auto rows = static_cast<std::int64_t>(matrix.indptr.size()) - 1;
  std::vector<float> values(static_cast<std::size_t>(rows * matrix.columns));
  for (std::int64_t row = 0; row < rows; ++row) {
    for (auto k = matrix.indptr[static_cast<std::size_t>(row)];
         k < matrix.indptr[static_cast<std::size_t>(row) + 1]; ++k) {
      const auto at = static_cast<std::size_t>(k);
      values[static_cast<std::size_t>(row * matrix.columns + matrix.indices[at])] +=
          static_cast<float>(matrix.values[at]);
    }
  }
  return values;
}

TEST(DensifierTest, EveryValueIsInItsPlace) {
  for (const std::int64_t columns : {1, 3, 16, 31, 1000, 40'000}) {
    for (const double density : {0.0, 0.01, 0.5, 1.0}) {
      for (const std::int64_t rows : {0, 1, 7, 40}) {
        SCOPED_TRACE(std::to_string(columns) + " " + std::to_string(density) + " " +
                     std::to_string(rows));
        const auto matrix = random_matrix(rows, columns, density, 7);
        for (const std::int64_t threads : {1, 3}) {
          const Densifier densify(columns, {}, threads);
          for (const std::size_t shift : {0U, 4U, 60U}) {
            EXPECT_EQ(dense<float>(densify, matrix.tensor(), shift), expected(matrix));
          }
        }
      }
    }
  }
}

template <class Value, class Index>
void expect_types() {
  const auto matrix = random_matrix<Value, Index>(9, 77, 0.2, 3);
  EXPECT_EQ(dense<float>(Densifier(77), matrix.tensor()), expected(matrix));
}

TEST(DensifierTest, TakesWhateverNumbers) {
  expect_types<std::uint8_t, std::int32_t>();
  expect_types<std::int8_t, std::int64_t>();
  expect_types<std::uint16_t, std::int32_t>();
  expect_types<std::int16_t, std::int64_t>();
  expect_types<std::uint32_t, std::int32_t>();
  expect_types<std::int32_t, std::int64_t>();
  expect_types<std::uint64_t, std::int32_t>();
  expect_types<std::int64_t, std::int64_t>();
  expect_types<double, std::int32_t>();
}

TEST(DensifierTest, RoundsToTheWantedType) {
  auto matrix = random_matrix(9, 77, 0.3, 5);
  for (float& value : matrix.values) value = value / 7 - 3;
  matrix.add_row({{3, std::numeric_limits<float>::quiet_NaN()}, {4, 1e30F}});
  const std::vector<float> wanted = expected(matrix);
  const auto halves =
      dense<std::uint16_t>(Densifier(77, {.dtype = DType::float16}, 2), matrix.tensor(), 2);
  const auto brains =
      dense<std::uint16_t>(Densifier(77, {.dtype = DType::bfloat16}, 2), matrix.tensor(), 2);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const bool nan = std::isnan(wanted[i]);
    EXPECT_EQ(halves[i], nan ? 0x7E00 : device::to_float16(wanted[i]));
    EXPECT_EQ(brains[i], nan ? 0x7FC0 : device::to_bfloat16(wanted[i]));
  }
}

TEST(DensifierTest, TransformsValues) {
  Matrix<> matrix{.columns = 6};
  matrix.add_row({{0, 1.0F}, {2, 3.0F}});
  matrix.add_row({});
  matrix.add_row({{5, -2.0F}, {1, 2.0F}});  // adds up to 0
  EXPECT_EQ(dense<float>(Densifier(6, {.binary = true}), matrix.tensor()),
            (std::vector<float>{1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1}));
  EXPECT_EQ(dense<float>(Densifier(6, {.row_sum = 100}), matrix.tensor()),
            (std::vector<float>{25, 0, 75, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, -2}));
  matrix.values.back() = 0.5F;
  const auto logs = dense<float>(Densifier(6, {.row_sum = 8, .log1p = true}), matrix.tensor());
  EXPECT_FLOAT_EQ(logs[0], std::log1p(2.0F));
  EXPECT_FLOAT_EQ(logs[2], std::log1p(6.0F));
  EXPECT_EQ(logs[1], 0);
}

TEST(DensifierTest, ColumnsMayComeInAnyOrderAndTwice) {
  Matrix<> matrix{.columns = 20};
  matrix.add_row({{19, 1.0F}, {3, 2.0F}, {19, 4.0F}, {0, 8.0F}, {3, 16.0F}});
  matrix.add_row({{7, 1.0F}, {7, 1.0F}});
  EXPECT_EQ(dense<float>(Densifier(20), matrix.tensor()), expected(matrix));
}

TEST(DensifierTest, RefusesWhatDoesNotFit) {
  using enum ErrorCode;
  expect_error(invalid_argument, {"columns", "0"}, [] { Densifier(0); });
  expect_error(invalid_argument, {"dtype", "int64"}, [] { Densifier(1, {.dtype = DType::int64}); });
  expect_error(invalid_argument, {"binary", "log1p"},
               [] { Densifier(1, {.binary = true, .log1p = true}); });
  expect_error(invalid_argument, {"row_sum"}, [] { Densifier(1, {.row_sum = 0}); });
  expect_error(invalid_argument, {"num_threads"}, [] { Densifier(1, {}, -1); });
  const auto matrix = random_matrix(2, 10, 1, 1);
  const Densifier densify(10);
  std::vector<std::byte> output(80);
  expect_error(invalid_argument, {"80", "79 bytes"},
               [&] { densify(matrix.tensor(), std::span(output).first(79)); });
  expect_error(invalid_argument, {"10 columns instead of 11"},
               [&] { Densifier(11)(matrix.tensor(), output); });
  for (const std::int32_t column : {-1, 10}) {
    auto wrong = matrix;
    wrong.indices[4] = column;
    expect_error(invalid_argument, {"row 0", "none of the 10"},
                 [&] { densify(wrong.tensor(), output); });
  }
}

}  // namespace
}  // namespace chunkio
