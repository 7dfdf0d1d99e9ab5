// The kernel that crops, flips, normalises and transposes moves bytes and computes little, so it is
// compared with a copy in device memory that reads and writes as many bytes in all. Each round
// times many launches of the kernel, then as many copies, each on the next of several buffers, so
// that nothing is found in the L2 cache.

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "device/augmentation.hpp"
#include "gpu/gpu_case.hpp"
#include "harness/noise.hpp"
#include "harness/spread.hpp"

namespace bench {
namespace {

using chunkio::DType;
using chunkio::Layout;
using chunkio::device::CropPlan;
using chunkio::device::DeviceBuffer;
using chunkio::device::Gpu;
using chunkio::device::LabelPlan;
using chunkio::device::NormalizePlan;
using chunkio::device::RowTask;

constexpr std::int64_t kSmallBatch = 512;
/// Of small images, so that a batch is larger than the L2 cache. compare_torch.py has the same.
constexpr std::int64_t kLargeBatch = 65536;
constexpr std::int64_t kSmallImage = 16384;  // bytes
/// Inputs that were used since a buffer was used last, in sizes of the L2 cache.
constexpr std::int64_t kCacheMultiple = 4;
/// As of cudaMalloc.
constexpr std::int64_t kAlignment = 256;

struct Kind {
  DType dtype;
  Layout layout;
  bool augmented;  // With random crops from a padded image, and flips.

  [[nodiscard]] std::string name() const {
    return std::string(to_string(dtype)) + (layout == Layout::nchw ? " NCHW" : " channels-last") +
           (augmented ? ", cropped and flipped" : "");
  }
};
constexpr std::array<Kind, 5> kKinds = {{{DType::float16, Layout::nchw, false},
                                         {DType::float16, Layout::nhwc, false},
                                         {DType::float32, Layout::nchw, false},
                                         {DType::float32, Layout::nhwc, false},
                                         {DType::float16, Layout::nchw, true}}};

NormalizePlan plan_of(const ImageSize& size, const Kind& kind) {
  chunkio::NormalizeOptions options = normalize_options(kind.dtype, kind.layout);
  if (kind.augmented) {
    options.padding = 4;
    options.random_crop = true;
    options.flip = true;
  }
  return chunkio::device::make_normalize_plan(info_of(size), options);
}

constexpr std::int64_t aligned(std::int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

/// Batches to be normalised, each in a buffer with the room for its output behind it. A copy goes
/// from the first half of a buffer to the second: the same memory, and in all the same bytes.
class Batches {
 public:
  Batches(const GpuRun& run, const NormalizePlan& plan, std::int64_t num_rows)
      : gpu_(run.gpu), plan_(plan), num_rows_(num_rows) {
    const std::int64_t input_bytes = num_rows * plan.image_bytes();
    output_at_ = static_cast<std::size_t>(aligned(input_bytes));
    half_ = static_cast<std::size_t>((aligned(input_bytes) + num_rows * plan.output_bytes()) / 2 /
                                     kAlignment * kAlignment);

    int cache_bytes = 0;
    check_cuda(cudaDeviceGetAttribute(&cache_bytes, cudaDevAttrL2CacheSize, 0),
               "cudaDeviceGetAttribute");
    const std::int64_t count =
        std::max<std::int64_t>(2, kCacheMultiple * cache_bytes / input_bytes + 1);

    images_.resize(static_cast<std::size_t>(input_bytes));
    fill_with_noise(images_);
    const auto buffer_bytes =
        output_at_ + static_cast<std::size_t>(num_rows * plan.output_bytes()) + kAlignment;
    for (std::int64_t i = 0; i < count; ++i) {
      const DeviceBuffer& buffer = buffers_.emplace_back(gpu_, buffer_bytes);
      // What the kernel leaves out will differ from what is expected.
      check_cuda(cudaMemset(buffer.get(), 0xA5, buffer_bytes), "cudaMemset");
      check_cuda(cudaMemcpy(buffer.get(), images_.data(), images_.size(), cudaMemcpyHostToDevice),
                 "cudaMemcpy");
    }
    const chunkio::base::PhiloxKey key = chunkio::base::augmentation_key(7, 1);
    for (std::int64_t i = 0; i < num_rows; ++i) {
      tasks_.push_back(
          {static_cast<std::int32_t>(i), chunkio::device::crop_of(plan.crop, key, i, 0)});
    }
    device_tasks_ = DeviceBuffer(gpu_, tasks_.size() * sizeof(RowTask));
    check_cuda(cudaMemcpy(device_tasks_.get(), tasks_.data(), tasks_.size() * sizeof(RowTask),
                          cudaMemcpyHostToDevice),
               "cudaMemcpy");
    // All that may still be under way, and streams of ours do not wait for it.
    check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }

  [[nodiscard]] std::int64_t size() const noexcept { return std::ssize(buffers_); }
  /// Read and written by the kernel for a batch.
  [[nodiscard]] std::int64_t bytes() const noexcept {
    return num_rows_ * (plan_.image_bytes() + plan_.output_bytes());
  }
  /// Bytes of the kernel / of a copy, which moves up to a few hundred less.
  [[nodiscard]] double copy_share() const noexcept {
    return static_cast<double>(bytes()) / (2.0 * static_cast<double>(half_));
  }

  void normalize(std::int64_t i, cudaStream_t stream) const {
    std::byte* const buffer = at(i);
    gpu_->normalize(plan_, LabelPlan{},
                    {.images = buffer,
                     .labels = nullptr,
                     .tasks = reinterpret_cast<const RowTask*>(device_tasks_.get()),
                     .num_rows = num_rows_,
                     .output = buffer + output_at_,
                     .output_labels = nullptr},
                    stream);
  }
  void copy(std::int64_t i, cudaStream_t stream) const {
    std::byte* const buffer = at(i);
    check_cuda(cudaMemcpyAsync(buffer + half_, buffer, half_, cudaMemcpyDeviceToDevice, stream),
               "cudaMemcpyAsync");
  }
  /// The outputs of all buffers, against the CPU. \throws std::runtime_error.
  void check(cudaStream_t stream) const {
    for (std::int64_t i = 0; i < size(); ++i) normalize(i, stream);
    check_cuda(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    for (const std::int64_t i : {std::int64_t{0}, size() - 1}) {
      check_outputs(plan_, images_, tasks_, at(i) + output_at_);
    }
  }

 private:
  [[nodiscard]] std::byte* at(std::int64_t i) const {
    return buffers_[static_cast<std::size_t>(i % size())].get();
  }

  std::shared_ptr<Gpu> gpu_;
  NormalizePlan plan_;
  std::int64_t num_rows_;
  std::size_t output_at_ = 0;  // In a buffer.
  std::size_t half_ = 0;       // Of a buffer.
  std::vector<std::byte> images_;
  std::vector<RowTask> tasks_;
  std::vector<DeviceBuffer> buffers_;
  DeviceBuffer device_tasks_;
};

/// One piece of work for each buffer, to be repeated with one call.
class Graph {
 public:
  template <class Work>
  Graph(const Batches& batches, cudaStream_t stream, Work work) {
    check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
               "cudaStreamBeginCapture");
    for (std::int64_t i = 0; i < batches.size(); ++i) work(i, stream);
    cudaGraph_t graph = nullptr;
    check_cuda(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
    const cudaError_t status = cudaGraphInstantiate(&graph_, graph, 0);
    static_cast<void>(cudaGraphDestroy(graph));
    check_cuda(status, "cudaGraphInstantiate");
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph() { static_cast<void>(cudaGraphExecDestroy(graph_)); }

  void launch(cudaStream_t stream) const {
    check_cuda(cudaGraphLaunch(graph_, stream), "cudaGraphLaunch");
  }

 private:
  cudaGraphExec_t graph_ = nullptr;
};

TurnSeconds time_launches(TimedStream& stream, const Batches& batches, std::int64_t rounds) {
  const std::int64_t launches = timed_launches(batches.bytes());
  return times_of_turns(
      stream, rounds, launches,
      [&](cudaStream_t s) {
        for (std::int64_t i = 0; i < launches; ++i) batches.normalize(i, s);
      },
      [&](cudaStream_t s) {
        for (std::int64_t i = 0; i < launches; ++i) batches.copy(i, s);
      },
      batches.copy_share());
}

TurnSeconds time_graphs(TimedStream& stream, const Batches& batches, std::int64_t rounds) {
  const Graph kernel(batches, stream.get(),
                     [&](std::int64_t i, cudaStream_t s) { batches.normalize(i, s); });
  const Graph copy(batches, stream.get(),
                   [&](std::int64_t i, cudaStream_t s) { batches.copy(i, s); });
  const std::int64_t replays = std::max<std::int64_t>(1, 4000 / batches.size());
  return times_of_turns(
      stream, rounds, replays * batches.size(),
      [&](cudaStream_t s) {
        for (std::int64_t i = 0; i < replays; ++i) kernel.launch(s);
      },
      [&](cudaStream_t s) {
        for (std::int64_t i = 0; i < replays; ++i) copy.launch(s);
      },
      batches.copy_share());
}

std::vector<double> microseconds(std::vector<double> seconds) {
  for (double& value : seconds) value *= 1e6;
  return seconds;
}

void add_torch(const GpuRun& run, const ImageSize& size, const Kind& kind, std::int64_t batch,
               const TurnSeconds& seconds, Report& report) {
  const std::string by_operations = "PyTorch's operations one by one / kernel, " + kind.name();
  const std::string by_transforms = "torchvision.transforms.v2 / kernel, " + kind.name();
  const Target target = at_least(4);
  const auto add_missing = [&](const std::string& reason, bool failed) {
    for (const std::string& row : {by_operations, by_transforms}) {
      report.add({row, size.name, {}, target, reason, failed});
    }
  };
  if (run.torch.is_null()) return add_missing("compare_torch.py was not run", false);
  for (const auto& entry : run.torch.at("cases")) {
    if (entry.at("size") != size.name || entry.at("dtype") != to_string(kind.dtype) ||
        entry.at("layout") != to_string(kind.layout) || entry.at("batch") != batch) {
      continue;
    }
    const auto ratio_of = [&](const char* name) {
      return ratios(entry.at(name).get<std::vector<double>>(), seconds.work);
    };
    const bool with_torchvision = entry.contains("transforms_seconds");
    const std::string note =
        "PyTorch " + run.torch.at("torch").get<std::string>() + ", " +
        (with_torchvision ? "torchvision " + run.torch.at("torchvision").get<std::string>()
                          : "no torchvision") +
        ", a process of its own before this one";
    report.add({by_operations, size.name, ratio_of("chain_seconds"), target, note});
    if (with_torchvision) {
      report.add({by_transforms, size.name, ratio_of("transforms_seconds"), target, note});
    } else {
      report.add({by_transforms, size.name, {}, target, "there was no torchvision"});
    }
    report.add({"PyTorch's copy of as many bytes / kernel, " + kind.name(),
                size.name,
                ratio_of("copy_seconds"),
                {},
                note});
    return;
  }
  add_missing("compare_torch.py has no such case", true);
}

}  // namespace

void measure_kernel(const GpuRun& run, const ImageSize& size, Report& report) {
  const bool small = size.bytes() < kSmallImage;
  const std::int64_t batch = small ? kLargeBatch : kSmallBatch;
  TimedStream stream;
  for (const Kind& kind : kKinds) {
    const NormalizePlan plan = plan_of(size, kind);
    const Batches batches(run, plan, batch);
    batches.check(stream.get());
    const TurnSeconds seconds = time_launches(stream, batches, run.options.rounds);
    report.add({"kernel / copy in device memory, " + kind.name(), size.name,
                ratios(seconds.copy, seconds.work),
                kind.augmented ? std::optional<Target>() : at_least(0.85)});
    report.add({"kernel, GB/s read and written, " + kind.name(), size.name,
                gigabytes_per_second(batches.bytes(), seconds.work)});
    report.add({"copy, GB/s read and written, " + kind.name(), size.name,
                gigabytes_per_second(batches.bytes(), seconds.copy)});
    if (!kind.augmented) add_torch(run, size, kind, batch, seconds, report);
    report.add_detail(size.name, "kernel, " + kind.name(),
                      {{"batch", batch},
                       {"buffers", batches.size()},
                       {"bytes", batches.bytes()},
                       {"kernel_seconds", seconds.work},
                       {"copy_seconds", seconds.copy}});
  }
  if (!small) return;

  // What fits into the L2 cache and takes as long as a launch.
  const Kind kind = kKinds.front();
  const Batches batches(run, plan_of(size, kind), kSmallBatch);
  batches.check(stream.get());
  const std::string of = ", batches of " + std::to_string(kSmallBatch) + ", " + kind.name();
  for (const bool in_graph : {false, true}) {
    const TurnSeconds seconds = in_graph ? time_graphs(stream, batches, run.options.rounds)
                                         : time_launches(stream, batches, run.options.rounds);
    const std::string how = in_graph ? of + ", in a CUDA graph" : of;
    report.add(
        {"kernel / copy in device memory" + how, size.name, ratios(seconds.copy, seconds.work)});
    report.add({"kernel, microseconds a batch" + how, size.name, microseconds(seconds.work)});
  }
}

}  // namespace bench
