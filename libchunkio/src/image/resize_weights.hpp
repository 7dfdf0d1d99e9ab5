/// What resized pixels are made of, for CPU code and CUDA kernels: libchunkio/doc/order.md, section
/// 12, "Pixels".
///
/// Weights depend on every bit, so each float64 operation is rounded once, in the order that Pillow
/// has them in. On a GPU, products are made by a function that no compiler joins with the addition
/// behind it; CPU code that includes this is compiled with -ffp-contract=off.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/host_device.hpp"
#include "image/resize_avx2.hpp"
#include "image/resized_crop.hpp"

namespace chunkio::image {

/// What sums of weights and pixels begin with, so that halves are rounded up.
inline constexpr std::int32_t kHalfWeight = 1 << (kWeightBits - 1);

CHUNKIO_HOST_DEVICE inline std::uint8_t clipped(std::int32_t sum) noexcept {
  return static_cast<std::uint8_t>(std::min(sum >> kWeightBits, 255));
}

CHUNKIO_HOST_DEVICE inline double rounded_product(double a, double b) noexcept {
#ifdef __CUDA_ARCH__
  return __dmul_rn(a, b);
#else
  return a * b;
#endif
}

/// The input pixels of an output pixel.
struct Taps {
  double center;
  std::int32_t first;
  std::int32_t count;
};

/// An axis of `input` pixels that becomes one of `output`. One whose size stays gives each pixel
/// itself.
struct AxisScale {
  CHUNKIO_HOST_DEVICE AxisScale(std::int32_t input_in, std::int32_t output) noexcept
      : input(input_in),
        scale(static_cast<double>(input_in) / output),
        support(std::max(scale, 1.0)),
        per_support(1.0 / support) {}

  CHUNKIO_HOST_DEVICE Taps taps_of(std::int32_t i) const noexcept {
    const double center = rounded_product(i + 0.5, scale);
    const auto begin = std::max(static_cast<std::int32_t>(center - support + 0.5), 0);
    const auto end = std::min(static_cast<std::int32_t>(center + support + 0.5), input);
    return {center, begin, end - begin};
  }
  /// What input pixel `pixel` counts for, before the weights of an output pixel are made to add up
  /// to one.
  CHUNKIO_HOST_DEVICE double triangle(std::int32_t pixel, double center) const noexcept {
    const double distance = std::fabs(rounded_product(pixel - center + 0.5, per_support));
    return std::max(0.0, 1.0 - distance);
  }

  std::int32_t input;
  double scale;
  double support;
  double per_support;
};

/// The weight, when cut to an integer. \param sum  of the triangles of an output pixel, from the
/// first to the last.
CHUNKIO_HOST_DEVICE inline double scaled_weight(double triangle, double sum) noexcept {
  return 0.5 + rounded_product(triangle / sum, 1 << kWeightBits);
}

/// Whether columns are resized before rows, where both are.
CHUNKIO_HOST_DEVICE inline bool columns_come_first(const Box& box, const Size& resized) noexcept {
  return resized.height < box.height &&
         box.height - resized.height > 2 * (box.width - resized.width);
}

/// Taps that no output pixel has more of, where axes of up to `input` pixels become one of
/// `output`.
constexpr std::int64_t most_taps(std::int64_t input, std::int64_t output) noexcept {
  return 2 * std::max(input, output) / output + 2;
}

}  // namespace chunkio::image
