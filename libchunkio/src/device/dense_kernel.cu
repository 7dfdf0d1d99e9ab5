#include <cstdint>
#include <limits>

#include "device/dense_kernel.cuh"
#include "device/dense_row.hpp"
#include "device/launch.cuh"

namespace chunkio::device {
namespace {

// What threads do is in dense_row.hpp; here they get their numbers and the barrier.

__global__ void add_up_rows(const __grid_constant__ DensePlan plan,
                            const __grid_constant__ DenseWork work) {
  __shared__ double sums[kMaxThreads];
  const auto thread = static_cast<int>(threadIdx.x);
  sums[thread] = partial_sum(plan, work, blockIdx.x, thread, kMaxThreads);
  for (int half = kMaxThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    add_half(sums, thread, half);
  }
  if (thread == 0) finish_sum(plan, work, blockIdx.x, sums[0]);
}

template <DType dtype>
__global__ void densify(const __grid_constant__ DensePlan plan,
                        const __grid_constant__ LabelPlan labels,
                        const __grid_constant__ DenseWork work) {
  const auto thread = static_cast<int>(threadIdx.x);
  const DensePart part = part_of(plan, blockIdx.x);
  __shared__ std::int64_t found;
  find_entries(plan, work, part, thread, kMaxThreads, &found);
  clear_part<dtype>(plan, work, part, thread, kMaxThreads);
  __syncthreads();
  write_part<dtype>(plan, labels, work, part, found, thread, kMaxThreads);
}

}  // namespace

cudaError_t launch_densify(const DensePlan& plan, const LabelPlan& labels, const DenseWork& work,
                           cudaStream_t stream) {
  const std::int64_t parts = num_parts(plan);
  if (work.num_rows > std::numeric_limits<std::int32_t>::max() / parts) {
    return cudaErrorInvalidConfiguration;  // More blocks than a grid has.
  }
  if (plan.scaled) {
    const cudaError_t status = launch(&add_up_rows, static_cast<unsigned>(work.num_rows),
                                      kMaxThreads, 0, stream, plan, work);
    if (status != cudaSuccess) return status;
  }
  const auto blocks = static_cast<unsigned>(work.num_rows * parts);
  switch (plan.dtype) {
    case DType::float16:
      return launch(&densify<DType::float16>, blocks, kMaxThreads, 0, stream, plan, labels, work);
    case DType::bfloat16:
      return launch(&densify<DType::bfloat16>, blocks, kMaxThreads, 0, stream, plan, labels, work);
    default:
      return launch(&densify<DType::float32>, blocks, kMaxThreads, 0, stream, plan, labels, work);
  }
}

}  // namespace chunkio::device
