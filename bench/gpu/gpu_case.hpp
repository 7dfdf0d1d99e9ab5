/// What the experiments on a GPU have in common.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

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

/// Launches to be timed at once, each of which moves `bytes`: about 15 ms on a fast device.
[[nodiscard]] std::int64_t timed_launches(std::int64_t bytes);

struct TurnSeconds {
  std::vector<double> work;  ///< Of a batch, for each round.
  std::vector<double> copy;  ///< Of as many bytes in device memory.
};

/// Has `work` and `copy` take turns. Each puts `launches` batches into the stream that it is given.
/// \param copy_share  bytes that the work moves / that the copy moves.
[[nodiscard]] TurnSeconds times_of_turns(TimedStream& stream, std::int64_t rounds,
                                         std::int64_t launches,
                                         const std::function<void(cudaStream_t)>& work,
                                         const std::function<void(cudaStream_t)>& copy,
                                         double copy_share = 1);

/// The same for work that moves `bytes` in a launch, beside copies in a buffer of its own.
[[nodiscard]] TurnSeconds times_beside_copies(const GpuRun& run, TimedStream& stream,
                                              std::int64_t bytes,
                                              const std::function<void(cudaStream_t)>& work);
/// The row "PyTorch / `row`", by what compare_torch.py calls `work`.
void add_torch_work(const GpuRun& run, const std::string& work, const std::string& row,
                    const TurnSeconds& seconds, Report& report);

/// A buffer on the device with the bytes of `host`.
template <class T>
[[nodiscard]] chunkio::device::DeviceBuffer on_device(const GpuRun& run, std::span<const T> host) {
  chunkio::device::DeviceBuffer buffer(run.gpu, host.size_bytes() + chunkio::device::kKernelSlack);
  check_cuda(cudaMemcpy(buffer.get(), host.data(), host.size_bytes(), cudaMemcpyHostToDevice),
             "cudaMemcpy");
  return buffer;
}

/// The mean and standard deviation of ImageNet's images, as compare_torch.py has them.
chunkio::NormalizeOptions normalize_options(chunkio::DType dtype, chunkio::Layout layout);

/// Compares what the device made of `images` with what the CPU makes of them, bit for bit.
/// \param outputs  in device memory, one for each of `tasks`.
/// \throws std::runtime_error with the number of an output that differs.
void check_outputs(const chunkio::device::NormalizePlan& plan, std::span<const std::byte> images,
                   std::span<const chunkio::device::RowTask> tasks, const std::byte* outputs);

/// The kernel against copies in device memory, and against PyTorch.
void measure_kernel(const GpuRun& run, const ImageSize& size, Report& report);
/// Random resized crops against copies, and against torchvision.
void measure_resized_crops(const GpuRun& run, Report& report);
/// Rows of a sparse matrix made dense, against copies, and against PyTorch.
void measure_dense_rows(const GpuRun& run, Report& report);
/// Batches from a loader's page-locked memory against bare copies to the device.
void measure_uploads(const GpuRun& run, const Case& images, Report& report);
/// What a batch costs beside its bytes: small copies, events.
void measure_calls(const GpuRun& run, Report& report);
/// DeviceLoader against the slower of reading alone and uploading alone.
void measure_file_to_device(const GpuRun& run, const Case& images, Report& report);

/// All of them.
[[nodiscard]] Suite gpu_suite();

}  // namespace bench
