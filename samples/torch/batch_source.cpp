#include "batch_source.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

#include <chunkio/chunk_layout.hpp>
#include <chunkio/cuda/device_loader.hpp>
#include <chunkio/loader.hpp>
#include <chunkio/normalizer.hpp>
#include <chunkio/torch.hpp>

#include "compute_stream.hpp"
#include "naive_source.hpp"

namespace trainer {
namespace {

/// `count` rows of a dataset, evenly spread: the first ones of a file that is sorted by class would
/// be all of one class.
chunkio::RowSelection spread_rows(std::int64_t count, std::int64_t size) {
  std::vector<std::int64_t> rows;
  for (std::int64_t i = 0; i < count; ++i) rows.push_back(i * size / count);
  return chunkio::RowSelection::of(rows);
}

chunkio::LoaderOptions loader_options(const chunkio::Dataset& dataset, const Options& options,
                                      const BatchRequest& request) {
  chunkio::LoaderOptions loader;
  loader.batch_size = options.batch;
  loader.seed = options.seed;
  loader.io.num_threads = options.threads;
  loader.memory.budget = options.memory_budget;
  loader.order.window_bytes =
      options.window_bytes > 0
          ? options.window_bytes
          : std::clamp<std::int64_t>(options.memory_budget / 4, 1, chunkio::kDefaultWindowBytes);
  loader.io.direct_io = options.direct_io;
  // Every source holds one batch; DeviceLoader two, while they cross to the GPU.
  loader.memory.max_held = 2;
  if (request.training) {
    loader.order.mode = options.order;
    loader.io.num_epochs = options.epochs;
    std::int64_t count = dataset.size();
    if (options.limit_images > 0 && options.limit_images < count) {
      count = options.limit_images;
      loader.rows = spread_rows(count, dataset.size());
    }
    loader.order.drop_last = count >= options.batch;
  } else {
    loader.order.mode = chunkio::OrderMode::sequential;
    loader.io.num_epochs = 1;
    // In file order nothing is mixed, so windows need not be large.
    loader.order.window_bytes = 1;
  }
  return loader;
}

chunkio::NormalizeOptions normalize_options(const chunkio::Dataset& dataset, const Options& options,
                                            bool training) {
  const chunkio::DatasetInfo& info = dataset.info();
  chunkio::NormalizeOptions normalize;
  // Read as [B,C,H,W] with channels last, which is how convolutions want them.
  normalize.layout = chunkio::Layout::nhwc;
  if (!info.statistics) {
    // A file that other programs wrote may not say; any usual values do for images.
    normalize.mean = {0.5};
    normalize.std = {0.25};
  }
  if (training && options.augment) {
    // 4 pixels for the 32 of CIFAR-10, as is usual; as much of larger images.
    normalize.padding = std::max<std::int64_t>(1, std::min(info.height, info.width) / 8);
    normalize.random_crop = true;
    normalize.flip = true;
  }
  return normalize;
}

torch::Tensor channels_first(const torch::Tensor& images) { return images.permute({0, 3, 1, 2}); }

class HostSource : public BatchSource {
 public:
  HostSource(const chunkio::Dataset& dataset, const Options& options, const BatchRequest& request)
      : loader_(dataset, loader_options(dataset, options, request)),
        normalize_(dataset.info(), normalize_options(dataset, options, request.training)),
        request_(request),
        echo_(request.training ? options.echo : 1) {}

  void start_epoch(std::int64_t epoch) override {
    batch_.reset();
    loader_.start_epoch(epoch);
  }

  std::optional<TrainingBatch> next() override {
    if (!batch_ || pass_ == echo_) {
      batch_.reset();
      batch_ = loader_.next();
      if (!batch_) return {};
      pass_ = 0;
    }
    const chunkio::Shape shape = normalize_.output_shape(batch_->size());
    const bool to_gpu = request_.device.is_cuda();
    // LibTorch keeps page-locked memory for the next batch once the copy from it is done.
    torch::Tensor images =
        torch::empty(torch::IntArrayRef(shape.dims().data(), shape.rank()),
                     torch::TensorOptions().dtype(torch::kFloat32).pinned_memory(to_gpu));
    normalize_(*batch_, {static_cast<std::byte*>(images.data_ptr()), images.nbytes()}, pass_);
    ++pass_;
    // A copy: as long as somebody has the labels they would hold the whole batch.
    torch::Tensor labels = chunkio::to_torch(*batch_, batch_->labels())
                               .to(request_.label_dtype, /*non_blocking=*/false, /*copy=*/true);
    if (to_gpu) {
      images = images.to(request_.device, /*non_blocking=*/true);
      labels = labels.pin_memory().to(request_.device, /*non_blocking=*/true);
    }
    return TrainingBatch{channels_first(images), labels};
  }

  std::int64_t num_steps() const override { return loader_.num_steps() * echo_; }

  std::string description() const override {
    return "read by " + std::string(chunkio::to_string(loader_.source())) +
           ", normalised on the CPU";
  }

  std::string advice() const override { return loader_.stats().bottleneck().summary(); }

 private:
  chunkio::Loader loader_;
  chunkio::Normalizer normalize_;
  BatchRequest request_;
  std::int64_t echo_;
  std::optional<chunkio::Batch> batch_;
  std::int64_t pass_ = 0;
};

chunkio::cuda::DeviceOptions device_options(const chunkio::Dataset& dataset, const Options& options,
                                            const BatchRequest& request) {
  chunkio::cuda::DeviceOptions device;
  device.device = request.device.index();
  device.normalize = normalize_options(dataset, options, request.training);
  // What convolutions compute with, so nothing is converted once more.
  device.normalize.dtype = chunkio::DType::bfloat16;
  device.label_dtype =
      request.label_dtype == torch::kInt64 ? chunkio::DType::int64 : chunkio::DType::float32;
  if (request.training) {
    device.echo = options.echo;
    device.echo_buffer_batches =
        options.echo_buffer_batches > 0 ? options.echo_buffer_batches : (options.echo > 1 ? 4 : 1);
  }
  device.resident = options.resident ? chunkio::cuda::DeviceResident::automatic
                                     : chunkio::cuda::DeviceResident::off;
  return device;
}

class DeviceSource : public BatchSource {
 public:
  DeviceSource(const chunkio::Dataset& dataset, const Options& options, const BatchRequest& request)
      : loader_(chunkio::Loader(dataset, loader_options(dataset, options, request)),
                device_options(dataset, options, request)),
        device_(request.device) {}

  void start_epoch(std::int64_t epoch) override { loader_.start_epoch(epoch); }

  std::optional<TrainingBatch> next() override {
    const std::optional<chunkio::cuda::DeviceBatch> batch =
        loader_.next(static_cast<chunkio::cuda::Stream>(current_cuda_stream(device_)));
    if (!batch) return {};
    return TrainingBatch{channels_first(chunkio::to_torch(*batch, batch->images())),
                         chunkio::to_torch(*batch, batch->labels())};
  }

  std::int64_t num_steps() const override { return loader_.num_steps(); }

  std::string description() const override {
    const chunkio::cuda::DeviceStats stats = loader_.stats();
    return stats.resident ? "resident on the GPU"
                          : "uploaded from " +
                                std::string(stats.pinned ? "page-locked" : "pageable") + " memory";
  }

  std::string advice() const override { return loader_.stats().bottleneck().summary(); }

 private:
  chunkio::cuda::DeviceLoader loader_;
  torch::Device device_;
};

}  // namespace

std::unique_ptr<BatchSource> make_batch_source(const chunkio::Dataset& dataset,
                                               const Options& options,
                                               const BatchRequest& request) {
  switch (request.kind) {
    case LoaderKind::device:
      return std::make_unique<DeviceSource>(dataset, options, request);
    case LoaderKind::naive:
      return std::make_unique<NaiveSource>(dataset, loader_options(dataset, options, request),
                                           normalize_options(dataset, options, request.training),
                                           request);
    case LoaderKind::host:
      break;
  }
  return std::make_unique<HostSource>(dataset, options, request);
}

}  // namespace trainer
