/// The kernel that makes rows of a CSR matrix dense, and the one that adds up rows before it.
#pragma once

#include <cuda_runtime.h>

#include "device/gpu.hpp"

namespace chunkio::device {

/// Returns what the launch met. \pre as Gpu::densify().
[[nodiscard]] cudaError_t launch_densify(const DensePlan& plan, const LabelPlan& labels,
                                         const DenseWork& work, cudaStream_t stream);

}  // namespace chunkio::device
