#include "device/dense_plan.hpp"

#include <cmath>
#include <string>

#include <chunkio/error.hpp>

#include "base/require.hpp"

namespace chunkio::device {

void check_dense_options(std::int64_t columns, const DenseOptions& options) {
  using base::require;
  require(columns >= 1, "columns must be >= 1, got " + std::to_string(columns));
  require(
      options.dtype == DType::float32 || options.dtype == DType::float16 ||
          options.dtype == DType::bfloat16,
      "dtype must be float32, float16 or bfloat16, got " + std::string(to_string(options.dtype)));
  require(!options.row_sum || (*options.row_sum > 0 && std::isfinite(*options.row_sum)),
          "row_sum must be above 0 and finite");
  require(!options.binary || (!options.row_sum && !options.log1p),
          "binary makes every value 1; leave out row_sum and log1p");
}

DensePlan make_dense_plan(const DatasetInfo& info, const DenseOptions& options) {
  check_dense_options(info.sparse->columns, options);
  const DType values = info.leading.dtype;
  if (values == DType::float16 || values == DType::bfloat16) {
    throw Error(ErrorCode::unsupported,
                "rows of " + std::string(to_string(values)) + " cannot be made dense");
  }
  return {.columns = info.sparse->columns,
          .values = values,
          .indices = info.sparse->index_dtype,
          .dtype = options.dtype,
          .element_bytes = static_cast<std::int64_t>(size_of(options.dtype)),
          .binary = options.binary,
          .scaled = options.row_sum.has_value(),
          .row_sum = options.row_sum.value_or(0),
          .log1p = options.log1p};
}

}  // namespace chunkio::device
