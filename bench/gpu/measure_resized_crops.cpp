// Random resized crops: batches of 375x500 to 224x224, float16 NCHW, half of them flipped. Beside a
// copy in device memory of as many bytes as the boxes and the outputs have, since nothing can be
// faster than reading the one and writing the other.

#include <numeric>
#include <stdexcept>
#include <vector>

#include <chunkio/normalizer.hpp>

#include "device/augmentation.hpp"
#include "device/resize_kernel_plan.hpp"
#include "gpu/gpu_case.hpp"
#include "harness/noise.hpp"
#include "harness/spread.hpp"

namespace bench {
namespace {

using chunkio::device::DeviceBuffer;
using chunkio::device::RowTask;
namespace image = chunkio::image;

// compare_torch.py has the same.
constexpr ImageSize kStored{"375x500", 375, 500, 3};
constexpr std::int64_t kSide = 224;
constexpr std::int64_t kBatch = 256;
constexpr std::uint64_t kSeed = 7;

}  // namespace

void measure_resized_crops(const GpuRun& run, Report& report) {
  chunkio::NormalizeOptions options =
      normalize_options(chunkio::DType::float16, chunkio::Layout::nchw);
  options.crop_height = kSide;
  options.crop_width = kSide;
  options.random_resized_crop = chunkio::ResizedCropRanges{};
  options.flip = true;
  options.seed = kSeed;
  const chunkio::device::NormalizePlan plan =
      chunkio::device::make_normalize_plan(info_of(kStored), options);

  std::vector<std::byte> images(static_cast<std::size_t>(kBatch * kStored.bytes()));
  fill_with_noise(images);
  std::vector<RowTask> tasks;
  std::vector<image::Box> boxes;
  const auto key = chunkio::base::augmentation_key(kSeed, 0);
  std::int64_t bytes = kBatch * plan.output_bytes();
  for (std::int64_t i = 0; i < kBatch; ++i) {
    const chunkio::device::Augmentation wanted = chunkio::device::augmentation_of(plan, key, i, 0);
    tasks.push_back({static_cast<std::int32_t>(i), wanted.crop});
    boxes.push_back(wanted.box);
    bytes += std::int64_t{wanted.box.height} * wanted.box.width * kStored.channels;
  }
  const DeviceBuffer device_images = on_device<std::byte>(run, images);
  const DeviceBuffer device_tasks = on_device<RowTask>(run, tasks);
  const DeviceBuffer device_boxes = on_device<image::Box>(run, boxes);
  const DeviceBuffer scratch(
      run.gpu, static_cast<std::size_t>(chunkio::device::resize_scratch_bytes(plan, kBatch)));
  std::vector<std::byte> got(static_cast<std::size_t>(kBatch * plan.output_bytes()));
  const DeviceBuffer output(run.gpu, got.size());
  check_cuda(cudaMemset(output.get(), 0xA5, got.size()), "cudaMemset");
  check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  const auto resize = [&](cudaStream_t stream) {
    run.gpu->normalize(plan, {},
                       {.images = device_images.get(),
                        .tasks = reinterpret_cast<const RowTask*>(device_tasks.get()),
                        .num_rows = kBatch,
                        .output = output.get(),
                        .boxes = reinterpret_cast<const image::Box*>(device_boxes.get()),
                        .scratch = scratch.get()},
                       stream);
  };
  TimedStream stream;
  resize(stream.get());
  check_cuda(cudaStreamSynchronize(stream.get()), "cudaStreamSynchronize");
  check_cuda(cudaMemcpy(got.data(), output.get(), got.size(), cudaMemcpyDeviceToHost),
             "cudaMemcpy");
  std::vector<std::int64_t> ids(static_cast<std::size_t>(kBatch));
  std::iota(ids.begin(), ids.end(), 0);
  std::vector<std::byte> expected(got.size());
  const chunkio::Normalizer on_cpu(info_of(kStored), options);
  on_cpu(chunkio::Tensor(images.data(), chunkio::DType::uint8,
                         {kBatch, kStored.height, kStored.width, kStored.channels}),
         ids, 0, expected);
  if (got != expected) throw std::runtime_error("the crops are not those of the CPU");

  const TurnSeconds seconds = times_beside_copies(run, stream, bytes, resize);
  const std::string of = "random resized crops of 375x500 to 224x224, float16 NCHW";
  const std::vector<double> million(seconds.work.size(), static_cast<double>(kBatch) / 1e6);
  report.add({of + ": millions a second", "-", ratios(million, seconds.work)});
  report.add({of + " / copy of as many bytes", "-", ratios(seconds.copy, seconds.work)});
  add_torch_work(run, "resized crops", of, seconds, report);
  report.add_detail("-", of,
                    {{"batch", kBatch},
                     {"bytes", bytes},
                     {"kernel_seconds", seconds.work},
                     {"copy_seconds", seconds.copy}});
}

}  // namespace bench
