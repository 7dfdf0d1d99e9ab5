/// Options of making rows of a CSR matrix dense, checked and in the form that CPU code and kernels
/// take them.
#pragma once

#include <cstdint>

#include <chunkio/dataset.hpp>
#include <chunkio/normalizer.hpp>

namespace chunkio::device {

struct DensePlan {
  std::int64_t columns = 0;
  DType values = DType::float32;  ///< As they are stored.
  DType indices = DType::int32;   ///< int32 or int64.
  DType dtype = DType::float32;   ///< Of the output.
  std::int64_t element_bytes = 4;
  bool binary = false;
  bool scaled = false;  ///< Each row's values are to add up to `row_sum`.
  double row_sum = 0;
  bool log1p = false;

  /// Of the output of one row. Kernels ask for it, too.
  [[nodiscard]] constexpr std::int64_t output_bytes() const noexcept {
    return columns * element_bytes;
  }
};

/// \throws Error invalid_argument: see Densifier.
void check_dense_options(std::int64_t columns, const DenseOptions& options);

/// \pre a CSR matrix leads. \throws Error invalid_argument; unsupported: values of that type.
[[nodiscard]] DensePlan make_dense_plan(const DatasetInfo& info, const DenseOptions& options);

}  // namespace chunkio::device
