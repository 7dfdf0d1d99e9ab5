/// What the experiments on a GPU have in common.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <nlohmann/json.hpp>

#include "device/gpu.hpp"
#include "device/normalize_plan.hpp"
#include "harness/epoch_case.hpp"
#include "harness/figure.hpp"
#include "harness/suite.hpp"

namespace bench {

struct GpuRun {
  std::shared_ptr<chunkio::device::Gpu> gpu;
  const Options& options;
  nlohmann::ordered_json torch;  ///< What compare_torch.py printed, or null.
};

/// \throws std::runtime_error with CUDA's text.
void check_cuda(cudaError_t status, const char* call);

/// A stream and two events, which tell how long the device takes for what is put into it.
class TimedStream {
 public:
  TimedStream();
  TimedStream(const TimedStream&) = delete;
  TimedStream& operator=(const TimedStream&) = delete;
  ~TimedStream();

  [[nodiscard]] cudaStream_t get() const noexcept { return stream_; }
  /// Seconds on the device from the start to the end of what `work(stream)` puts into the stream.
  template <class Work>
  double seconds_of(Work work) {
    check_cuda(cudaEventRecord(start_, stream_), "cudaEventRecord");
    work(stream_);
    check_cuda(cudaEventRecord(end_, stream_), "cudaEventRecord");
    check_cuda(cudaEventSynchronize(end_), "cudaEventSynchronize");
    float milliseconds = 0;
    check_cuda(cudaEventElapsedTime(&milliseconds, start_, end_), "cudaEventElapsedTime");
    return static_cast<double>(milliseconds) / 1000;
  }

 private:
  cudaStream_t stream_ = nullptr;
  cudaEvent_t start_ = nullptr;
  cudaEvent_t end_ = nullptr;
};

/// The mean and standard deviation of ImageNet's images, as compare_torch.py has them.
chunkio::NormalizeOptions normalize_options(chunkio::DType dtype, chunkio::Layout layout);

/// Compares what the device made of `images` with what the CPU makes of them, bit for bit.
/// \param outputs  in device memory, one for each of `tasks`.
/// \throws std::runtime_error with the number of an output that differs.
void check_outputs(const chunkio::device::NormalizePlan& plan, std::span<const std::byte> images,
                   std::span<const chunkio::device::RowTask> tasks, const std::byte* outputs);

/// The kernel against copies in device memory, and against PyTorch.
void measure_kernel(const GpuRun& run, const ImageSize& size, Report& report);
/// Batches from a loader's page-locked memory against bare copies to the device.
void measure_uploads(const GpuRun& run, const Case& images, Report& report);
/// What a batch costs beside its bytes: small copies, events.
void measure_calls(const GpuRun& run, Report& report);
/// DeviceLoader against the slower of reading alone and uploading alone.
void measure_file_to_device(const GpuRun& run, const Case& images, Report& report);

/// All of them.
[[nodiscard]] Suite gpu_suite();

}  // namespace bench
