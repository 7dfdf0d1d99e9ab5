#include "gpu/gpu_case.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <vector>

#include "device/image_transform.hpp"
#include "harness/in_parallel.hpp"

namespace bench {

using chunkio::device::ImageTransform;
using chunkio::device::NormalizePlan;
using chunkio::device::RowTask;

void check_cuda(cudaError_t status, const char* call) {
  if (status != cudaSuccess) {
    throw std::runtime_error(std::string(call) + ": " + cudaGetErrorString(status));
  }
}

TimedStream::TimedStream() {
  check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
  check_cuda(cudaEventCreate(&start_), "cudaEventCreate");
  check_cuda(cudaEventCreate(&end_), "cudaEventCreate");
}

TimedStream::~TimedStream() {
  static_cast<void>(cudaEventDestroy(end_));
  static_cast<void>(cudaEventDestroy(start_));
  static_cast<void>(cudaStreamDestroy(stream_));
}

chunkio::NormalizeOptions normalize_options(chunkio::DType dtype, chunkio::Layout layout) {
  return {.dtype = dtype,
          .layout = layout,
          .mean = {0.485, 0.456, 0.406},
          .std = {0.229, 0.224, 0.225}};
}

void check_outputs(const NormalizePlan& plan, std::span<const std::byte> images,
                   std::span<const RowTask> tasks, const std::byte* outputs) {
  const auto output_bytes = static_cast<std::size_t>(plan.output_bytes());
  std::vector<std::byte> got(tasks.size() * output_bytes);
  check_cuda(cudaMemcpy(got.data(), outputs, got.size(), cudaMemcpyDeviceToHost), "cudaMemcpy");
  const ImageTransform writer(plan);
  const auto threads = static_cast<std::int64_t>(std::max(1u, std::thread::hardware_concurrency()));
  in_parallel(std::ssize(tasks), threads, [&] {
    return [&, expected = std::vector<std::byte>(output_bytes)](std::int64_t i) mutable {
      const auto at = static_cast<std::size_t>(i);
      const RowTask& task = tasks[at];
      writer.write_rows(
          reinterpret_cast<const std::uint8_t*>(images.data()) + task.row * plan.image_bytes(),
          task.crop, 0, plan.crop.height, expected.data());
      if (std::memcmp(expected.data(), got.data() + at * output_bytes, output_bytes) != 0) {
        throw std::runtime_error("the kernel's output " + std::to_string(i) +
                                 " is not that of the CPU");
      }
    };
  });
}

}  // namespace bench
