/// The kernels of dense rows, all their threads run on the CPU.
#pragma once

#include <array>
#include <cstdint>

#include "device/dense_row.hpp"

namespace chunkio::test {

template <DType dtype>
void run_dense_blocks(const device::DensePlan& plan, const device::LabelPlan& labels,
                      const device::DenseWork& work) {
  for (std::int64_t block = 0; block < work.num_rows * device::num_parts(plan); ++block) {
    const device::DensePart part = device::part_of(plan, block);
    std::int64_t found = -1;
    for (int thread = 0; thread < device::kMaxThreads; ++thread) {
      device::find_entries(plan, work, part, thread, device::kMaxThreads, &found);
      device::clear_part<dtype>(plan, work, part, thread, device::kMaxThreads);
    }
    for (int thread = 0; thread < device::kMaxThreads; ++thread) {
      device::write_part<dtype>(plan, labels, work, part, found, thread, device::kMaxThreads);
    }
  }
}

/// As Gpu::densify(), on memory of the host.
inline void run_dense_kernels(const device::DensePlan& plan, const device::LabelPlan& labels,
                              const device::DenseWork& work) {
  for (std::int64_t sample = 0; plan.scaled && sample < work.num_rows; ++sample) {
    std::array<double, device::kMaxThreads> sums{};
    for (int thread = 0; thread < device::kMaxThreads; ++thread) {
      sums[static_cast<std::size_t>(thread)] =
          device::partial_sum(plan, work, sample, thread, device::kMaxThreads);
    }
    for (int half = device::kMaxThreads / 2; half > 0; half /= 2) {
      for (int thread = 0; thread < device::kMaxThreads; ++thread) {
        device::add_half(sums.data(), thread, half);
      }
    }
    device::finish_sum(plan, work, sample, sums[0]);
  }
  switch (plan.dtype) {
    case DType::float16:
      return run_dense_blocks<DType::float16>(plan, labels, work);
    case DType::bfloat16:
      return run_dense_blocks<DType::bfloat16>(plan, labels, work);
    default:
      return run_dense_blocks<DType::float32>(plan, labels, work);
  }
}

}  // namespace chunkio::test
