/// The one kernel: gather, crop, flip, convert, normalise, transpose; and labels beside it.
#pragma once

#include <cuda_runtime.h>

#include "device/gpu.hpp"

namespace chunkio::device {

/// Whether a row of the picture fits into the shared memory of a block: up to 16,000 RGB pixels.
[[nodiscard]] bool fits_kernel(const NormalizePlan& plan);

/// Puts the kernel into `stream`. Returns what the launch met.
/// \pre fits_kernel(plan); work.num_rows >= 1; memory behind the last picture is readable up to the
///      next multiple of 16 bytes, and pictures begin at one.
[[nodiscard]] cudaError_t launch_normalize(const NormalizePlan& plan, const LabelPlan& labels,
                                           const BatchWork& work, cudaStream_t stream);

}  // namespace chunkio::device
