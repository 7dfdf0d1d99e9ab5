/// How boxes are resized on a device: in groups of samples, by three kernels one after the other,
/// in scratch memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/host_device.hpp"
#include "device/gpu.hpp"
#include "device/normalize_plan.hpp"
#include "image/resized_crop.hpp"

namespace chunkio::device {

/// NormalizePlan as the kernels read it. Sizes in pixels.
struct ResizeKernelPlan {
  std::int32_t image_height;
  std::int32_t image_width;
  image::Size output;
  std::int32_t planes;       ///< Of an image: 1, or one a channel.
  std::int32_t pixel_bytes;  ///< From one pixel of a plane to the next.
  std::int32_t row_taps;     ///< Room for weights of a pixel, in the axis of `output.width`.
  std::int32_t column_taps;  ///< In that of `output.height`.

  /// After the first pass, of a plane at most.
  [[nodiscard]] CHUNKIO_HOST_DEVICE std::int64_t between_pixels() const noexcept {
    const std::int64_t rows_first = std::int64_t{image_height} * output.width;
    const std::int64_t columns_first = std::int64_t{image_width} * output.height;
    return rows_first > columns_first ? rows_first : columns_first;
  }
  [[nodiscard]] CHUNKIO_HOST_DEVICE std::int64_t output_pixels() const noexcept {
    return std::int64_t{output.height} * output.width;
  }
  /// int32 numbers of the axis tables of a sample.
  [[nodiscard]] CHUNKIO_HOST_DEVICE std::int64_t row_axis_numbers() const noexcept {
    return std::int64_t{output.width} * (2 + row_taps);
  }
  [[nodiscard]] CHUNKIO_HOST_DEVICE std::int64_t axis_numbers() const noexcept {
    return row_axis_numbers() + std::int64_t{output.height} * (2 + column_taps);
  }
};

/// Samples that are resized together. All addresses are of device memory.
struct ResizeWork {
  const std::byte* images = nullptr;
  const RowTask* tasks = nullptr;     ///< [num_rows]
  const image::Box* boxes = nullptr;  ///< [num_rows]
  std::int64_t num_rows = 0;
  std::int32_t* axes = nullptr;  ///< [num_rows][axis_numbers()]
  std::byte* between = nullptr;  ///< [num_rows][planes][between_pixels()][pixel_bytes]
  std::byte* resized = nullptr;  ///< [num_rows][planes][output_pixels()][pixel_bytes]
};

/// \pre plan.resized_crop.
[[nodiscard]] ResizeKernelPlan make_resize_kernel_plan(const NormalizePlan& plan);

/// Bytes of BatchWork::scratch for batches of up to `rows` samples: 64 MiB, or what a sample needs
/// if that is more. 0 where nothing is resized.
[[nodiscard]] std::int64_t resize_scratch_bytes(const NormalizePlan& plan, std::int64_t rows);

/// A group, and what is left to do for it.
struct ResizeGroup {
  ResizeWork resize;
  BatchWork normalize;
};
/// Samples of a group.
[[nodiscard]] std::int64_t resize_group_rows(const NormalizePlan& plan, std::int64_t rows);
/// The group that begins with sample `first` of a batch.
[[nodiscard]] ResizeGroup resize_group(const NormalizePlan& plan, const LabelPlan& labels,
                                       const BatchWork& work, std::int64_t first);

}  // namespace chunkio::device
