/// The one kernel: gather, crop, flip, convert, normalise, transpose; and labels beside it. And
/// what resizes before it, brings it its tasks, and gathers fields.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "device/gpu.hpp"
#include "device/kernel_plan.hpp"

namespace chunkio::device {

/// Puts the kernel into `stream`; behind those that resize, where boxes are resized. Returns what
/// the launch met.
/// \pre fits_kernel(plan); work.num_rows >= 1; memory behind the last image is readable up to the
///      next multiple of 16 bytes, and images begin at one.
[[nodiscard]] cudaError_t launch_normalize(const NormalizePlan& plan, const LabelPlan& labels,
                                           const BatchWork& work, cudaStream_t stream);

/// Copies from page-locked host memory, which threads of the device can read.
/// \pre both addresses and `bytes` are multiples of 16; bytes > 0.
[[nodiscard]] cudaError_t launch_fetch(std::byte* target, const std::byte* source,
                                       std::size_t bytes, cudaStream_t stream);

/// \pre as Gpu::gather().
[[nodiscard]] cudaError_t launch_gather(const GatherWork& work, cudaStream_t stream);

}  // namespace chunkio::device
