/// Device loaders of a small file on the GPU of the tests, and what they must deliver.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <chunkio/chunkio.hpp>
#include <chunkio/cuda/device_loader.hpp>

#include "base/access.hpp"
#include "device/echo_deal.hpp"
#include "support/errors.hpp"
#include "support/watched_gpu.hpp"
#include "support/pixels.hpp"
#include "support/scratch.hpp"

namespace chunkio::test {

using cuda::DeviceBatch;
using cuda::DeviceLoader;
using cuda::DeviceOptions;
using cuda::DeviceResident;

/// What a batch consists of, as bytes.
struct Delivered {
  std::int64_t epoch = 0;
  std::int64_t step = 0;
  std::int64_t echo_pass = 0;
  std::vector<std::int64_t> ids = {};
  std::vector<std::byte> images = {};
  std::vector<std::byte> labels = {};
  std::vector<std::byte> weights = {};  ///< The field, if the loader was asked for it.

  friend bool operator==(const Delivered&, const Delivered&) = default;
};

class DeviceLoaderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = folder_.file("train.h5");
    write_packed(path_, {.num_samples = 47, .height = 6, .width = 5, .chunk_samples = 6});
    start_gpu();
  }
  void TearDown() override { end_gpu(); }

  void start_gpu() {
    gpu_ = std::make_shared<WatchedGpu>();
    gpu_->set_capacity(kSmallGpu);
    stream_ = gpu_->create_stream();
  }
  void end_gpu() const {
    gpu_->destroy_stream(stream_);
    EXPECT_EQ(gpu_->live(), 0) << "something was taken and not given back";
    EXPECT_EQ(gpu_->unlocked_too_early(), 0);
  }

  /// What the dataset takes on a device.
  static constexpr std::int64_t kDatasetBytes = 47 * (6 * 5 * 3 + 8) + 16;
  /// Room for batches, but the dataset takes more than a quarter.
  static constexpr std::int64_t kSmallGpu = 4 * kDatasetBytes - 4;
  static constexpr std::int64_t kLargeGpu = 1 << 20;
  /// What an output batch of 4 images takes, as float32: images, labels and tasks.
  static constexpr std::int64_t kOutputBytes = 4 * (6 * 5 * 3 * 4 + 8 + 16);
  /// What two echo buffers of `rows` images take.
  [[nodiscard]] static constexpr std::int64_t echo_buffer_bytes(std::int64_t rows) {
    return 2 * (rows * (6 * 5 * 3 + 8) + 16);
  }

  [[nodiscard]] static LoaderOptions loader_options() {
    return {.batch_size = 4, .seed = 3, .io = {.num_threads = 2}};
  }
  [[nodiscard]] Loader host_loader(const LoaderOptions& options = loader_options()) const {
    return Loader(Dataset::open(path_), options);
  }
  [[nodiscard]] DeviceLoader device_loader(const DeviceOptions& options,
                                           const LoaderOptions& host = loader_options()) const {
    return internal::Access::make<cuda::DeviceLoader>(gpu_, host_loader(host), options);
  }
  [[nodiscard]] static NormalizeOptions augmented() {
    return {.mean = {0.4, 0.5, 0.6},
            .std = {0.25},
            .padding = 2,
            .random_crop = true,
            .flip = true,
            .seed = 11};
  }
  [[nodiscard]] static NormalizeOptions plain() { return {.mean = {0}, .std = {1}}; }

  /// Reads a batch as a consumer on a GPU would: by work of its stream.
  [[nodiscard]] Delivered read(const DeviceBatch& batch, bool has_weights = false) const {
    Delivered delivered{
        .epoch = batch.epoch(), .step = batch.step(), .echo_pass = batch.echo_pass()};
    delivered.ids.assign(batch.sample_ids().begin(), batch.sample_ids().end());
    delivered.images.resize(batch.images().size_bytes());
    delivered.labels.resize(batch.labels().size_bytes());
    const Tensor weights = has_weights ? batch["weights"] : Tensor{};
    delivered.weights.resize(weights.size_bytes());
    gpu_->run_on(stream_, [&delivered, weights, images = batch.images(), labels = batch.labels()] {
      const auto copy = [](std::vector<std::byte>& bytes, const Tensor& tensor) {
        if (!tensor.empty()) std::memcpy(bytes.data(), tensor.data(), bytes.size());
      };
      copy(delivered.images, images);
      copy(delivered.labels, labels);
      copy(delivered.weights, weights);
    });
    gpu_->synchronize(stream_);
    return delivered;
  }

  [[nodiscard]] std::vector<Delivered> drain(DeviceLoader& loader, bool has_weights = false) const {
    std::vector<Delivered> all;
    while (const auto batch = loader.next(stream_)) all.push_back(read(*batch, has_weights));
    return all;
  }
  [[nodiscard]] std::vector<Delivered> epoch_of(DeviceLoader& loader, std::int64_t epoch) const {
    loader.start_epoch(epoch);
    return drain(loader);
  }

  /// The same from Loader, Normalizer and the definition of echoing.
  [[nodiscard]] std::vector<Delivered> expected(
      const DeviceOptions& options, std::int64_t epoch,
      const LoaderOptions& host = loader_options()) const {
    Loader loader = host_loader(host);
    const Normalizer normalize(loader.dataset().info(), options.normalize);
    const auto sample_bytes = static_cast<std::size_t>(loader.dataset().info().sample_bytes());
    struct HostBatch {
      std::vector<std::int64_t> ids, labels;
      std::vector<std::byte> images;

      void add(const HostBatch& more) {
        ids.insert(ids.end(), more.ids.begin(), more.ids.end());
        labels.insert(labels.end(), more.labels.begin(), more.labels.end());
        images.insert(images.end(), more.images.begin(), more.images.end());
      }
    };
    std::vector<HostBatch> batches;
    for (const Batch& batch : loader.epoch(epoch)) {
      HostBatch& copy = batches.emplace_back();
      copy.ids.assign(batch.sample_ids().begin(), batch.sample_ids().end());
      if (loader.dataset().info().labels) {
        const auto labels = batch.labels().values<std::int64_t>();
        copy.labels.assign(labels.begin(), labels.end());
      }
      copy.images.assign(batch.images().data(),
                         batch.images().data() + batch.images().size_bytes());
    }
    std::vector<Delivered> all;
    const auto m = static_cast<std::size_t>(options.echo_buffer_batches);
    for (std::size_t first = 0; first < batches.size(); first += m) {
      const std::size_t end = std::min(first + m, batches.size());
      HostBatch big;
      for (std::size_t i = first; i < end; ++i) big.add(batches[i]);
      for (std::int64_t pass = 0; pass < options.echo; ++pass) {
        std::vector<std::int32_t> rows(big.ids.size());
        device::deal_rows({host.seed, epoch, host.ranks.rank, static_cast<std::int64_t>(first)},
                          pass, rows);
        auto row = rows.begin();
        for (std::size_t i = first; i < end; ++i) {
          Delivered made{.epoch = epoch, .step = std::ssize(all), .echo_pass = pass};
          std::vector<std::byte> images;
          for (std::size_t k = 0; k < batches[i].ids.size(); ++k, ++row) {
            const auto r = static_cast<std::size_t>(*row);
            made.ids.push_back(big.ids[r]);
            if (!host.fields.empty()) {
              const auto id = static_cast<float>(big.ids[r]);
              const std::vector<std::byte> weights = as_bytes<float>({id, -id});
              made.weights.insert(made.weights.end(), weights.begin(), weights.end());
            }
            const auto image = big.images.begin() + static_cast<std::ptrdiff_t>(r * sample_bytes);
            images.insert(images.end(), image, image + static_cast<std::ptrdiff_t>(sample_bytes));
            if (big.labels.empty()) continue;
            const std::vector<std::byte> label =
                options.label_dtype == DType::int64
                    ? as_bytes<std::int64_t>({big.labels[r]})
                    : as_bytes<float>({static_cast<float>(big.labels[r])});
            made.labels.insert(made.labels.end(), label.begin(), label.end());
          }
          made.images.resize(normalize.output_bytes(std::ssize(made.ids)));
          normalize({images.data(), DType::uint8,
                     loader.dataset().info().sample_shape().with_first_axis(std::ssize(made.ids))},
                    made.ids, epoch, made.images, pass);
          all.push_back(std::move(made));
        }
      }
    }
    return all;
  }

  ScratchFolder folder_;
  std::string path_;
  std::shared_ptr<WatchedGpu> gpu_;
  cuda::Stream stream_ = nullptr;
};

}  // namespace chunkio::test
