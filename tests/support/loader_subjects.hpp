/// What Loader and DeviceLoader promise alike is tried on: each of them on files of its own.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <chunkio/chunkio.hpp>
#include <chunkio/cuda/device_loader.hpp>

#include "base/access.hpp"
#include "harness/scratch_folder.hpp"
#include "support/errors.hpp"
#include "support/h5_files.hpp"
#include "support/pixels.hpp"
#include "support/watched_gpu.hpp"

namespace chunkio::test {

/// What both give of a batch. Images differ; tests of each of the two compare them.
struct BatchContents {
  std::int64_t epoch = 0;
  std::int64_t step = 0;
  std::vector<std::int64_t> ids = {};
  std::vector<std::int64_t> labels = {};
  std::vector<float> weights = {};

  friend bool operator==(const BatchContents&, const BatchContents&) = default;
};

/// Of host memory, or of the fake device's, which is host memory too.
template <class Value>
[[nodiscard]] std::vector<Value> copy_of(const Tensor& tensor) {
  EXPECT_EQ(tensor.dtype(), dtype_of<Value>());
  std::vector<Value> values(static_cast<std::size_t>(tensor.shape().num_elements()));
  std::memcpy(values.data(), tensor.data(), values.size() * sizeof(Value));
  return values;
}

template <class AnyBatch>
void expect_images(const AnyBatch& batch) {
  EXPECT_EQ(batch["images"], batch.images());
  EXPECT_TRUE(batch.contains(batch["images"]));
}

/// Whatever the loader, batches are read alike.
template <class AnyBatch>
[[nodiscard]] BatchContents contents_of(const AnyBatch& batch) {
  const Tensor weights = batch["weights"];
  EXPECT_EQ(weights.shape(), Shape({batch.size(), 2}));
  EXPECT_EQ(batch["labels"], batch.labels());
  for (const char* const name : {"labels", "weights"}) {
    EXPECT_TRUE(batch.contains(batch[name])) << name;
  }
  return {.epoch = batch.epoch(),
          .step = batch.step(),
          .ids = {batch.sample_ids().begin(), batch.sample_ids().end()},
          .labels = copy_of<std::int64_t>(batch["labels"]),
          .weights = copy_of<float>(weights)};
}

/// Files of 47 samples in chunks of 6, with labels and weights as write_packed() has them.
struct PackedImages {
  static constexpr const char* kNamed = "";
  static constexpr std::int64_t kSampleBytes = 90;
  static std::string make(const ScratchFolder& folder) {
    const std::string path = folder.file("train.h5");
    write_packed(path, {.num_samples = 47, .height = 6, .width = 5, .chunk_samples = 6});
    return path;
  }
  static void expect_rows(const Batch& batch) {
    expect_images(batch);
    for (std::int64_t i = 0; i < batch.size(); ++i) {
      const std::int64_t row = batch.sample_ids()[static_cast<std::size_t>(i)];
      EXPECT_EQ(std::memcmp(batch.images().data() + i * kSampleBytes,
                            image(row, kSampleBytes).data(), kSampleBytes),
                0)
          << row;
    }
    EXPECT_EQ(batch["images"], batch.leading());
  }
};

/// uint8 [47,9,10].
struct GrayImages {
  static constexpr const char* kNamed = "";
  static constexpr std::int64_t kSampleBytes = 90;
  static std::string make(const ScratchFolder& folder) { return h5py_file(folder, "packed_gray"); }
  static void expect_rows(const Batch& batch) {
    expect_images(batch);
    EXPECT_EQ(batch.images().shape(), Shape({batch.size(), 9, 10, 1}));
    for (std::int64_t i = 0; i < batch.size(); ++i) {
      const std::int64_t row = batch.sample_ids()[static_cast<std::size_t>(i)];
      EXPECT_EQ(std::memcmp(batch.images().data() + i * kSampleBytes,
                            pattern_rows(row, 1, kSampleBytes).data(), kSampleBytes),
                0)
          << row;
    }
    EXPECT_EQ(batch["x"], batch.leading());
    EXPECT_EQ(batch["images"], batch.leading());
  }
};

/// float32 [47,784].
struct Vectors {
  static constexpr const char* kNamed = "x";  // beside weights, which might lead as well
  static constexpr std::int64_t kSampleBytes = 784 * 4;
  static std::string make(const ScratchFolder& folder) {
    return h5py_file(folder, "packed_vectors");
  }
  static void expect_rows(const Batch& batch) {
    EXPECT_EQ(batch.leading().dtype(), DType::float32);
    EXPECT_EQ(batch.leading().shape(), Shape({batch.size(), 784}));
    const auto values = batch.leading().values<float>();
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto row = static_cast<std::size_t>(batch.sample_ids()[i / 784]);
      ASSERT_EQ(values[i], static_cast<float>(1024 * row + i % 784)) << row;
    }
    EXPECT_EQ(batch["x"], batch.leading());
    EXPECT_TRUE(batch.contains(batch.leading()));
    expect_error(ErrorCode::unsupported, {"no images", "x float32", "by its name"},
                 [&] { static_cast<void>(batch.images()); });
    expect_error(ErrorCode::not_found, {"'images'", "but x, labels, weights"},
                 [&] { static_cast<void>(batch["images"]); });
  }
};

template <class Files>
class Host {
 public:
  using File = Files;
  explicit Host(Loader loader) : loader_(std::move(loader)) {}

  [[nodiscard]] static Host resume(const Dataset& dataset, const LoaderOptions& options,
                                   const std::string& state) {
    return Host(Loader::resume(dataset, options, state));
  }

  [[nodiscard]] Loader& get() noexcept { return loader_; }
  [[nodiscard]] std::optional<Batch> next(const std::stop_token& stop = {},
                                          std::chrono::nanoseconds timeout = kForever) {
    return loader_.next(stop, timeout);
  }
  [[nodiscard]] auto epoch(std::int64_t number) { return loader_.epoch(number); }
  [[nodiscard]] static BatchContents read(const Batch& batch) {
    File::expect_rows(batch);
    return contents_of(batch);
  }
  [[nodiscard]] LoaderStats reading() { return loader_.stats(); }
  /// Whether each epoch reads the file.
  static constexpr bool kReads = true;

 private:
  Loader loader_;
};

/// \tparam echo_buffer_batches  of DeviceOptions.
template <cuda::DeviceResident resident, std::int64_t echo_buffer_batches>
class OnDevice {
 public:
  using File = PackedImages;
  explicit OnDevice(Loader loader)
      : stream_(gpu_),
        loader_(internal::Access::make<cuda::DeviceLoader>(gpu_, std::move(loader), options())) {}
  [[nodiscard]] static OnDevice resume(const Dataset& dataset, const LoaderOptions& loader,
                                       const std::string& state) {
    return OnDevice(dataset, loader, state);
  }

  [[nodiscard]] cuda::DeviceLoader& get() noexcept { return loader_; }
  [[nodiscard]] std::optional<cuda::DeviceBatch> next(const std::stop_token& stop = {},
                                                      std::chrono::nanoseconds timeout = kForever) {
    return loader_.next(stream_.get(), stop, timeout);
  }
  [[nodiscard]] auto epoch(std::int64_t number) { return loader_.epoch(number, stream_.get()); }
  [[nodiscard]] BatchContents read(const cuda::DeviceBatch& batch) const {
    // What lies on the fake device is host memory, once the stream has come there.
    gpu_->synchronize(stream_.get());
    expect_images(batch);
    return contents_of(batch);
  }
  [[nodiscard]] LoaderStats reading() { return loader_.stats().loader; }
  static constexpr bool kReads = resident == cuda::DeviceResident::off;

 private:
  OnDevice(const Dataset& dataset, const LoaderOptions& loader, const std::string& state)
      : stream_(gpu_),
        loader_(internal::Access::resume_on<cuda::DeviceLoader>(gpu_, dataset, loader, state,
                                                                options())) {}
  [[nodiscard]] static cuda::DeviceOptions options() {
    return {.normalize = {.mean = {0}, .std = {1}},
            .echo_buffer_batches = echo_buffer_batches,
            .max_held = 2,
            .release_timeout_seconds = 0,
            .resident = resident};
  }

  std::shared_ptr<WatchedGpu> gpu_ = std::make_shared<WatchedGpu>();
  device::GpuStream stream_;
  cuda::DeviceLoader loader_;
};

}  // namespace chunkio::test
