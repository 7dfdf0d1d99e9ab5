/// What each thread of the kernels that resize boxes does, as functions of its number: compiled for
/// the device, where the kernels call them, and for the CPU, where a test does.
///
/// The first kernel computes the weights of both axes of each box (`weigh`), the second one resizes
/// along one axis (`resize_first`), the third one along the other (`resize_second`). Each thread
/// makes one output pixel, and no two write the same byte. What is computed is that of ResizePlan,
/// bit for bit: an axis that keeps its size, of which ResizePlan has no pass, gives each pixel
/// itself.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/resize_kernel_plan.hpp"
#include "image/resize_weights.hpp"

namespace chunkio::device {

/// What the output pixels of an axis are made of. Neighbours lie beside each other, for the threads
/// that read them.
struct AxisTable {
  std::int32_t size;
  std::int32_t* first;    ///< [size]
  std::int32_t* count;    ///< [size]
  std::int32_t* weights;  ///< [taps][size]

  CHUNKIO_HOST_DEVICE AxisTable(std::int32_t* numbers, std::int32_t size_in) noexcept
      : size(size_in), first(numbers), count(numbers + size_in), weights(numbers + 2 * size_in) {}
};

/// Of rows that are resized along themselves.
CHUNKIO_HOST_DEVICE inline AxisTable row_axis(const ResizeKernelPlan& plan, const ResizeWork& work,
                                              std::int64_t sample) noexcept {
  return {work.axes + sample * plan.axis_numbers(), plan.output.width};
}

CHUNKIO_HOST_DEVICE inline AxisTable column_axis(const ResizeKernelPlan& plan,
                                                 const ResizeWork& work,
                                                 std::int64_t sample) noexcept {
  return {work.axes + sample * plan.axis_numbers() + plan.row_axis_numbers(), plan.output.height};
}

/// \param number  of num_rows * (width + height).
CHUNKIO_HOST_DEVICE inline void weigh(const ResizeKernelPlan& plan, const ResizeWork& work,
                                      std::int64_t number) noexcept {
  const int lines = plan.output.width + plan.output.height;
  const std::int64_t sample = number / lines;
  if (sample >= work.num_rows) return;
  const auto line = static_cast<int>(number - sample * lines);
  const bool is_column = line < plan.output.width;
  const image::Box box = work.boxes[sample];
  const AxisTable table =
      is_column ? row_axis(plan, work, sample) : column_axis(plan, work, sample);
  const image::AxisScale scale(is_column ? box.width : box.height, table.size);
  const int i = is_column ? line : line - plan.output.width;
  const image::Taps taps = scale.taps_of(i);
  double sum = 0;
  for (int tap = 0; tap < taps.count; ++tap) sum += scale.triangle(taps.first + tap, taps.center);
  table.first[i] = taps.first;
  table.count[i] = taps.count;
  for (int tap = 0; tap < taps.count; ++tap) {
    table.weights[std::int64_t{tap} * table.size + i] = static_cast<std::int32_t>(
        image::scaled_weight(scale.triangle(taps.first + tap, taps.center), sum));
  }
}

/// Pixel i of an axis.
/// \param source  the first pixel of the axis. \param step  bytes from one to the next.
template <int pixel_bytes>
CHUNKIO_HOST_DEVICE void resize_pixel(const AxisTable& axis, int i, const std::byte* source,
                                      std::int64_t step, std::byte* output) noexcept {
  std::int32_t sums[static_cast<std::size_t>(pixel_bytes)];
  for (std::int32_t& sum : sums) sum = image::kHalfWeight;
  const std::byte* from = source + axis.first[i] * step;
  const int count = axis.count[i];
  for (int tap = 0; tap < count; ++tap, from += step) {
    const std::int32_t weight = axis.weights[std::int64_t{tap} * axis.size + i];
    for (int c = 0; c < pixel_bytes; ++c) sums[c] += weight * static_cast<std::int32_t>(from[c]);
  }
  for (int c = 0; c < pixel_bytes; ++c) output[c] = static_cast<std::byte>(image::clipped(sums[c]));
}

/// \param plane  of num_rows * planes.
/// \param pixel  of between_pixels() of it; those that a smaller box does not have are left out.
template <int pixel_bytes>
CHUNKIO_HOST_DEVICE void resize_first(const ResizeKernelPlan& plan, const ResizeWork& work,
                                      std::int64_t plane, std::uint32_t pixel) noexcept {
  const std::int64_t sample = plane / plan.planes;
  const image::Box box = work.boxes[sample];
  const bool columns_first = image::columns_come_first(box, plan.output);
  const auto width = static_cast<std::uint32_t>(columns_first ? box.width : plan.output.width);
  const auto height = static_cast<std::uint32_t>(columns_first ? plan.output.height : box.height);
  const std::uint32_t y = pixel / width;
  const std::uint32_t x = pixel - y * width;
  if (y >= height) return;
  const std::int64_t image_plane =
      std::int64_t{work.tasks[sample].row} * plan.planes + plane % plan.planes;
  const std::int64_t first_row = image_plane * plan.image_height + box.top;
  const std::int64_t row_bytes = std::int64_t{plan.image_width} * pixel_bytes;
  const std::byte* const source =
      work.images + first_row * row_bytes + std::int64_t{box.left} * pixel_bytes;
  std::byte* const output =
      work.between + (plane * plan.between_pixels() + std::int64_t{pixel}) * pixel_bytes;
  if (columns_first) {
    resize_pixel<pixel_bytes>(column_axis(plan, work, sample), static_cast<int>(y),
                              source + std::int64_t{x} * pixel_bytes, row_bytes, output);
  } else {
    resize_pixel<pixel_bytes>(row_axis(plan, work, sample), static_cast<int>(x),
                              source + std::int64_t{y} * row_bytes, pixel_bytes, output);
  }
}

/// \param plane  as resize_first(). \param pixel  of output_pixels() of it.
template <int pixel_bytes>
CHUNKIO_HOST_DEVICE void resize_second(const ResizeKernelPlan& plan, const ResizeWork& work,
                                       std::int64_t plane, std::uint32_t pixel) noexcept {
  if (std::int64_t{pixel} >= plan.output_pixels()) return;
  const std::int64_t sample = plane / plan.planes;
  const image::Box box = work.boxes[sample];
  const bool columns_first = image::columns_come_first(box, plan.output);
  const auto width = static_cast<std::uint32_t>(plan.output.width);
  const std::uint32_t y = pixel / width;
  const std::uint32_t x = pixel - y * width;
  const std::int64_t row_bytes =
      std::int64_t{columns_first ? box.width : plan.output.width} * pixel_bytes;
  const std::byte* const source = work.between + plane * plan.between_pixels() * pixel_bytes;
  std::byte* const output =
      work.resized + (plane * plan.output_pixels() + std::int64_t{pixel}) * pixel_bytes;
  if (columns_first) {
    resize_pixel<pixel_bytes>(row_axis(plan, work, sample), static_cast<int>(x),
                              source + std::int64_t{y} * row_bytes, pixel_bytes, output);
  } else {
    resize_pixel<pixel_bytes>(column_axis(plan, work, sample), static_cast<int>(y),
                              source + std::int64_t{x} * pixel_bytes, row_bytes, output);
  }
}

/// Calls `use` with the plan's pixel_bytes as a template argument.
template <class Use>
auto with_pixel_bytes(const ResizeKernelPlan& plan, Use use) {
  switch (plan.pixel_bytes) {
    case 1:
      return use.template operator()<1>();
    case 2:
      return use.template operator()<2>();
    case 3:
      return use.template operator()<3>();
    default:
      return use.template operator()<4>();
  }
}

}  // namespace chunkio::device
