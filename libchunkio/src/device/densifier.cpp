#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <chunkio/error.hpp>
#include <chunkio/normalizer.hpp>

#include "base/checked_math.hpp"
#include "base/require.hpp"
#include "base/streaming_copy.hpp"
#include "device/dense_lines.hpp"
#include "device/dense_plan.hpp"
#include "device/thread_team.hpp"
#include "device/value.hpp"

namespace chunkio {
namespace {

/// Output bytes of a piece of work, at least: some rows.
constexpr std::int64_t kPieceBytes = std::int64_t{256} << 10;

/// Calls use(std::span<const T>) with the elements of `tensor` from `begin` to `end`.
template <class Use>
void with_values(const Tensor& tensor, std::int64_t begin, std::int64_t end, Use use) {
  const auto as = [&](auto element) {
    using T = decltype(element);
    use(std::span(reinterpret_cast<const T*>(tensor.data()) + begin,
                  static_cast<std::size_t>(end - begin)));
  };
  switch (tensor.dtype()) {
    case DType::uint8:
      return as(std::uint8_t{});
    case DType::int8:
      return as(std::int8_t{});
    case DType::uint16:
      return as(std::uint16_t{});
    case DType::int16:
      return as(std::int16_t{});
    case DType::uint32:
      return as(std::uint32_t{});
    case DType::int32:
      return as(std::int32_t{});
    case DType::uint64:
      return as(std::uint64_t{});
    case DType::int64:
      return as(std::int64_t{});
    case DType::float32:
      return as(float{});
    case DType::float64:
      return as(double{});
    case DType::float16:
    case DType::bfloat16:
      break;
  }
  throw Error(ErrorCode::unsupported,
              "rows of " + std::string(to_string(tensor.dtype())) + " cannot be made dense");
}

/// One row at a time, in memory that is used again.
struct Row {
  std::vector<std::int64_t> columns;
  std::vector<float> values;
};

/// Puts the columns of a row in order, and adds up values of the same.
void sort(Row& row) {
  std::vector<std::size_t> order(row.columns.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return row.columns[a] < row.columns[b]; });
  Row sorted;
  for (const std::size_t i : order) {
    if (!sorted.columns.empty() && sorted.columns.back() == row.columns[i]) {
      sorted.values.back() += row.values[i];
    } else {
      sorted.columns.push_back(row.columns[i]);
      sorted.values.push_back(row.values[i]);
    }
  }
  row = std::move(sorted);
}

void transform(std::vector<float>& values, const DenseOptions& options) {
  if (options.binary) {
    std::fill(values.begin(), values.end(), 1.0F);
    return;
  }
  if (options.row_sum) {
    const double sum = std::accumulate(values.begin(), values.end(), 0.0);
    if (sum != 0) {
      const auto factor = static_cast<float>(*options.row_sum / sum);
      for (float& value : values) value *= factor;
    }
  }
  if (options.log1p) {
    for (float& value : values) value = std::log1p(value);
  }
}

}  // namespace

struct Densifier::Impl {
  Impl(std::int64_t columns_in, DenseOptions options_in, std::int64_t num_threads)
      : columns(columns_in), options(options_in), team(num_threads) {}

  template <DType dtype>
  void write_rows(const SparseTensor& tensor, std::int64_t first, std::int64_t end,
                  std::span<std::byte> output) const {
    using T = typename device::Element<dtype>::Type;
    device::DenseLines<T> lines(reinterpret_cast<T*>(output.data()), first * columns,
                                end * columns);
    Row row;
    std::vector<std::int64_t> offsets(static_cast<std::size_t>(end - first) + 1);
    with_values(tensor.indptr, first, end + 1, [&](auto values) {
      std::transform(values.begin(), values.end(), offsets.begin(),
                     [](auto value) { return static_cast<std::int64_t>(value); });
    });
    for (std::int64_t i = first; i < end; ++i) {
      const std::int64_t begin = offsets[static_cast<std::size_t>(i - first)];
      const std::int64_t last = offsets[static_cast<std::size_t>(i - first) + 1];
      const auto count = static_cast<std::size_t>(last - begin);
      row.columns.resize(count);
      row.values.resize(count);
      std::int64_t least = -1;
      bool ascending = true;
      std::int64_t largest = 0;
      with_values(tensor.indices, begin, last, [&](auto indices) {
        for (std::size_t k = 0; k < count; ++k) {
          const auto column = static_cast<std::int64_t>(indices[k]);
          ascending = ascending && column > least;
          least = column;
          largest = std::max(largest, column < 0 ? columns : column);
          row.columns[k] = column;
        }
      });
      if (largest >= columns) {
        throw Error(ErrorCode::invalid_argument,
                    "row " + std::to_string(i) + " has a value in a column that is none of the " +
                        std::to_string(columns));
      }
      with_values(tensor.values, begin, last, [&](auto values) {
        std::transform(values.begin(), values.end(), row.values.begin(),
                       [](auto value) { return static_cast<float>(value); });
      });
      if (!ascending) sort(row);
      transform(row.values, options);
      for (std::size_t k = 0; k < row.columns.size(); ++k) {
        lines.put(i * columns + row.columns[k], device::element_of<dtype>(row.values[k]));
      }
    }
    lines.finish();
    base::store_fence();
  }

  std::int64_t columns;
  DenseOptions options;
  device::ThreadTeam team;
};

Densifier::Densifier(std::int64_t columns, DenseOptions options, std::int64_t num_threads) {
  device::check_dense_options(columns, options);
  impl_ = std::make_unique<Impl>(columns, options, device::checked_threads(num_threads));
}

Densifier::Densifier(Densifier&&) noexcept = default;
Densifier& Densifier::operator=(Densifier&&) noexcept = default;
Densifier::~Densifier() = default;

std::size_t Densifier::output_bytes(std::int64_t num_rows) const {
  return static_cast<std::size_t>(num_rows * impl_->columns) * size_of(impl_->options.dtype);
}
const DenseOptions& Densifier::options() const noexcept { return impl_->options; }

void Densifier::operator()(const SparseTensor& rows, std::span<std::byte> output) const {
  const std::int64_t columns = impl_->columns;
  const std::int64_t num_rows = rows.rows();
  const std::size_t element_bytes = size_of(impl_->options.dtype);
  const auto require = [](bool condition, const std::string& what) {
    base::require(condition, "making rows dense: " + what);
  };
  require(rows.columns == columns, "the rows have " + std::to_string(rows.columns) +
                                       " columns instead of " + std::to_string(columns));
  require(output.size() == output_bytes(num_rows),
          "the output has " + std::to_string(output.size()) + " bytes instead of " +
              std::to_string(output_bytes(num_rows)));
  require(reinterpret_cast<std::uintptr_t>(output.data()) % element_bytes == 0,
          "the output is not aligned to its element type");
  const std::int64_t row_bytes = columns * static_cast<std::int64_t>(element_bytes);
  const std::int64_t piece = std::max<std::int64_t>(1, kPieceBytes / row_bytes);
  impl_->team.run(base::ceil_divide(num_rows, piece), [&](std::int64_t i, std::int64_t) {
    const std::int64_t first = i * piece;
    const std::int64_t end = std::min(first + piece, num_rows);
    switch (impl_->options.dtype) {
      case DType::float16:
        return impl_->write_rows<DType::float16>(rows, first, end, output);
      case DType::bfloat16:
        return impl_->write_rows<DType::bfloat16>(rows, first, end, output);
      default:
        return impl_->write_rows<DType::float32>(rows, first, end, output);
    }
  });
}

}  // namespace chunkio
