/// How the kernels write labels beside what they make.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/host_device.hpp"
#include "device/gpu.hpp"

namespace chunkio::device {

/// Labels of row `row` of `from` become those of row `sample` of `to`, by all threads of a block.
CHUNKIO_HOST_DEVICE inline void write_labels(const LabelPlan& plan, const std::byte* from,
                                             std::int64_t row, std::byte* to, std::int64_t sample,
                                             int thread, int threads) noexcept {
#ifdef __CUDA_ARCH__
#pragma unroll 1
#endif
  for (std::int64_t i = thread; i < plan.values; i += threads) {
    const std::int64_t source = row * plan.values + i;
    const std::int64_t target = sample * plan.values + i;
    const std::int64_t value =
        plan.input == DType::int64
            ? reinterpret_cast<const std::int64_t*>(from)[source]
            : std::int64_t{reinterpret_cast<const std::uint8_t*>(from)[source]};
    if (plan.output == DType::float32) {
      reinterpret_cast<float*>(to)[target] = static_cast<float>(value);
    } else {
      reinterpret_cast<std::int64_t*>(to)[target] = value;
    }
  }
}

}  // namespace chunkio::device
