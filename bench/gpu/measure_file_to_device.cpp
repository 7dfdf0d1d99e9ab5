// From a file in the page cache to normalised images on the device. Nothing can be faster than
// the slower of its parts, so each round times, one after the other:
//
//   read    epochs through the Loader alone, with the same options
//   upload  page-locked batches of the same size, copied to the device and nothing else
//   all     epochs through DeviceLoader, until the last kernel is done
//
// And small images that are resident on the device, against the same ones from the page cache.

#include <algorithm>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <chunkio/cuda/device_loader.hpp>

#include "gpu/gpu_case.hpp"
#include "harness/spread.hpp"

namespace bench {
namespace {

using chunkio::SourceKind;
using chunkio::device::DeviceBuffer;
using chunkio::device::NormalizePlan;
using chunkio::device::PinnedBuffer;
using chunkio::device::RowTask;

/// Epochs in each timing: training goes through many.
constexpr std::int64_t kEpochs = 4;
/// Buffers that uploading alone alternates between.
constexpr std::size_t kBuffers = 4;

/// Page-locked batches that are copied to the device.
class BareUpload {
 public:
  BareUpload(const GpuRun& run, std::size_t batch_bytes)
      : batch_bytes_(batch_bytes),
        host_(run.gpu, kBuffers * batch_bytes),
        device_(run.gpu, kBuffers * batch_bytes) {
    std::fill_n(host_.get(), kBuffers * batch_bytes, std::byte{0x5A});
  }

  double seconds_of(std::int64_t batches) {
    return stream_.seconds_of([&](cudaStream_t stream) {
      for (std::int64_t i = 0; i < batches; ++i) {
        const std::size_t at = static_cast<std::size_t>(i) % kBuffers * batch_bytes_;
        check_cuda(cudaMemcpyAsync(device_.get() + at, host_.get() + at, batch_bytes_,
                                   cudaMemcpyHostToDevice, stream),
                   "cudaMemcpyAsync");
      }
    });
  }

 private:
  std::size_t batch_bytes_;
  PinnedBuffer host_;
  DeviceBuffer device_;
  TimedStream stream_;
};

/// Every image of an epoch, against the CPU. \throws std::runtime_error.
void check_device_epoch(chunkio::cuda::DeviceLoader& loader, const Case& images,
                        const NormalizePlan& plan, cudaStream_t stream) {
  const auto key = chunkio::base::augmentation_key(0, 0);  // Of no use without crops and flips.
  std::vector<std::int64_t> order;
  loader.start_epoch(kEpoch);
  while (const auto batch = loader.next(stream)) {
    std::vector<RowTask> tasks;
    for (const std::int64_t row : batch->sample_ids()) {
      order.push_back(row);
      tasks.push_back(
          {static_cast<std::int32_t>(row), chunkio::device::crop_of(plan.crop, key, row, 0)});
    }
    check_cuda(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    check_outputs(plan, images.pixels.bytes(), tasks,
                  static_cast<const std::byte*>(batch->images().data()));
  }
  if (order != images.order) throw std::runtime_error("DeviceLoader delivers another order");
}

void run_device_epochs(chunkio::cuda::DeviceLoader& loader, cudaStream_t stream) {
  for (std::int64_t epoch = kEpoch; epoch < kEpoch + kEpochs; ++epoch) {
    loader.start_epoch(epoch);
    while (loader.next(stream)) {
    }
  }
  check_cuda(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}

void measure(const GpuRun& run, const Case& images, SourceKind source, std::optional<Target> target,
             Report& report) {
  chunkio::LoaderOptions options = images.loader_options(source);
  options.io.num_epochs = kEpoch + kEpochs;
  const chunkio::Dataset dataset = chunkio::Dataset::open(images.path);
  chunkio::NormalizeOptions normalize =
      normalize_options(chunkio::DType::float16, chunkio::Layout::nchw);
  chunkio::Loader alone(dataset, options);
  // The way from the file is what is measured.
  chunkio::cuda::DeviceLoader loader(
      chunkio::Loader(dataset, options),
      {.normalize = normalize, .resident = chunkio::cuda::DeviceResident::off});
  const NormalizePlan plan = chunkio::device::make_normalize_plan(dataset.info(), normalize);
  const TimedStream stream;
  check_device_epoch(loader, images, plan, stream.get());
  run_epochs(alone, 1);
  const std::int64_t batch_bytes = options.batch_size * images.size.bytes();
  const std::int64_t epoch_batches = (images.num_samples * images.size.bytes()) / batch_bytes;
  if (epoch_batches == 0) throw std::runtime_error("the file has not one batch; raise --bytes");
  BareUpload upload(run, static_cast<std::size_t>(batch_bytes));
  static_cast<void>(upload.seconds_of(epoch_batches));

  std::vector<double> read_rates;  // Bytes a second.
  std::vector<double> upload_rates;
  std::vector<double> all_rates;
  for (std::int64_t round = 0; round < run.options.rounds; ++round) {
    read_rates.push_back(kEpochs * images.total_bytes() /
                         seconds_of([&] { run_epochs(alone, kEpochs); }));
    upload_rates.push_back(static_cast<double>(kEpochs * epoch_batches * batch_bytes) /
                           upload.seconds_of(kEpochs * epoch_batches));
    all_rates.push_back(kEpochs * images.total_bytes() /
                        seconds_of([&] { run_device_epochs(loader, stream.get()); }));
  }

  std::vector<double> limits;
  for (std::size_t i = 0; i < read_rates.size(); ++i) {
    limits.push_back(std::min(read_rates[i], upload_rates[i]));
  }
  const std::string of = std::string(", ") + std::string(to_string(source));
  const std::string size = images.size.name;
  report.add({"file to device / slower of reading and uploading" + of, size,
              ratios(all_rates, limits), target});
  const auto add_rates = [&](const std::string& what, std::vector<double> rates) {
    for (double& rate : rates) rate /= 1e9;
    report.add({what + of + ", GB/s", size, std::move(rates)});
  };
  add_rates("file to device", all_rates);
  add_rates("reading alone", read_rates);
  add_rates("uploading alone, beside" + of.substr(1), upload_rates);
  report.add_detail(size, "file to device" + of,
                    {{"threads", alone.num_threads()},
                     {"source", to_string(alone.source())},
                     {"batch", options.batch_size},
                     {"epochs", kEpochs},
                     {"read_bytes_per_second", read_rates},
                     {"upload_bytes_per_second", upload_rates},
                     {"bytes_per_second", all_rates}});
}

/// As many images as CIFAR-10 has to train on.
constexpr std::int64_t kResidentImages = 50'000;

/// Epochs of a dataset that is resident on the device, against epochs that come from the page
/// cache.
void measure_residency(const GpuRun& run, const Case& images, std::int64_t batch_size,
                       const std::optional<Target>& target, Report& report) {
  chunkio::LoaderOptions options = images.loader_options(SourceKind::automatic);
  options.batch_size = batch_size;
  options.io.num_epochs = kEpoch + kEpochs;
  if (images.num_samples > kResidentImages) {
    options.rows = chunkio::RowSelection({{.begin = 0, .end = kResidentImages}});
  }
  const chunkio::Dataset dataset = chunkio::Dataset::open(images.path);
  const chunkio::NormalizeOptions normalize =
      normalize_options(chunkio::DType::float16, chunkio::Layout::nchw);
  const auto make_loader = [&](chunkio::cuda::DeviceResident resident) {
    return chunkio::cuda::DeviceLoader(chunkio::Loader(dataset, options),
                                       {.normalize = normalize, .resident = resident});
  };
  chunkio::cuda::DeviceLoader fed = make_loader(chunkio::cuda::DeviceResident::off);
  chunkio::cuda::DeviceLoader resident = make_loader(chunkio::cuda::DeviceResident::require);
  const TimedStream stream;

  // The same images in the same order, to the last bit.
  fed.start_epoch(kEpoch);
  resident.start_epoch(kEpoch);
  while (const auto expected = fed.next(stream.get())) {
    const auto got = resident.next(stream.get());
    if (!got || !std::ranges::equal(got->sample_ids(), expected->sample_ids())) {
      throw std::runtime_error("the resident dataset comes in another order");
    }
    check_cuda(cudaStreamSynchronize(stream.get()), "cudaStreamSynchronize");
    const auto values = [](const chunkio::Tensor& tensor) {
      std::vector<std::byte> bytes(tensor.size_bytes());
      check_cuda(cudaMemcpy(bytes.data(), tensor.data(), bytes.size(), cudaMemcpyDeviceToHost),
                 "cudaMemcpy");
      return bytes;
    };
    if (values(got->images()) != values(expected->images())) {
      throw std::runtime_error("the resident dataset gives other images");
    }
  }

  std::vector<double> fed_seconds;
  std::vector<double> resident_seconds;
  for (std::int64_t round = 0; round < run.options.rounds; ++round) {
    fed_seconds.push_back(seconds_of([&] { run_device_epochs(fed, stream.get()); }));
    resident_seconds.push_back(seconds_of([&] { run_device_epochs(resident, stream.get()); }));
  }
  report.add({"resident epochs / epochs from the page cache, loader alone, batches of " +
                  std::to_string(batch_size),
              images.size.name, ratios(fed_seconds, resident_seconds), target});
  report.add_detail(images.size.name, "residency",
                    {{"images", std::min(images.num_samples, kResidentImages)},
                     {"batch", options.batch_size},
                     {"epochs", kEpochs},
                     {"fed_seconds", fed_seconds},
                     {"resident_seconds", resident_seconds}});
}

}  // namespace

void measure_file_to_device(const GpuRun& run, const Case& images, Report& report) {
  measure(run, images, SourceKind::scatter, at_least(0.9), report);
  measure(run, images, SourceKind::mapped, {}, report);
  measure_residency(
      run, images, run.options.batch_size,
      images.size.bytes() == kImageSizes[1].bytes() ? std::optional<Target>() : at_least(5),
      report);
}

}  // namespace bench
