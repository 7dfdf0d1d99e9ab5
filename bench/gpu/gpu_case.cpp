#include "gpu/gpu_case.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <vector>

#include "device/image_transform.hpp"
#include "harness/in_parallel.hpp"
#include "harness/spread.hpp"

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

std::int64_t timed_launches(std::int64_t bytes) {
  return std::clamp<std::int64_t>(64'000'000'000 / bytes, 10, 4000);
}

TurnSeconds times_of_turns(TimedStream& stream, std::int64_t rounds, std::int64_t launches,
                           const std::function<void(cudaStream_t)>& work,
                           const std::function<void(cudaStream_t)>& copy, double copy_share) {
  constexpr double kWarmUpSeconds = 0.3;
  const auto count = static_cast<double>(launches);
  // A device that had nothing to do needs a while to raise its clocks.
  for (double busy = 0; busy < kWarmUpSeconds;) {
    busy += stream.seconds_of(work) + stream.seconds_of(copy);
  }
  TurnSeconds seconds;
  for (std::int64_t round = 0; round < rounds; ++round) {
    seconds.work.push_back(stream.seconds_of(work) / count);
    seconds.copy.push_back(stream.seconds_of(copy) / count * copy_share);
  }
  return seconds;
}

TurnSeconds times_beside_copies(const GpuRun& run, TimedStream& stream, std::int64_t bytes,
                                const std::function<void(cudaStream_t)>& work) {
  const auto half = static_cast<std::size_t>(bytes / 2);
  const chunkio::device::DeviceBuffer buffer(run.gpu, 2 * half);
  std::byte* const memory = buffer.get();
  check_cuda(cudaMemset(memory, 0xA5, 2 * half), "cudaMemset");
  check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  const std::int64_t launches = timed_launches(bytes);
  return times_of_turns(
      stream, run.options.rounds, launches,
      [&](cudaStream_t s) {
        for (std::int64_t i = 0; i < launches; ++i) work(s);
      },
      [&](cudaStream_t s) {
        for (std::int64_t i = 0; i < launches; ++i) {
          check_cuda(cudaMemcpyAsync(memory + half, memory, half, cudaMemcpyDeviceToDevice, s),
                     "cudaMemcpyAsync");
        }
      });
}

void add_torch_work(const GpuRun& run, const std::string& work, const std::string& row,
                    const TurnSeconds& seconds, Report& report) {
  const std::string name = "PyTorch / " + row;
  if (run.torch.is_null()) {
    return report.add({name, "-", {}, {}, "compare_torch.py was not run"});
  }
  if (!run.torch.at("works").contains(work)) {
    return report.add({name, "-", {}, {}, "there was no torchvision"});
  }
  const auto& made = run.torch.at("works").at(work);
  report.add({name,
              "-",
              ratios(made.at("seconds").get<std::vector<double>>(), seconds.work),
              {},
              made.at("how").get<std::string>()});
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
