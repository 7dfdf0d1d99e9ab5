// A DeviceLoader of a CSR matrix, on the GPU of the tests: dense rows, made there.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include <chunkio/chunkio.hpp>
#include <chunkio/cuda/device_loader.hpp>

#include "base/access.hpp"
#include "support/errors.hpp"
#include "support/watched_gpu.hpp"
#include "support/scratch.hpp"
#include "support/sparse_files.hpp"

namespace chunkio::test {
namespace {

using cuda::DeviceBatch;
using cuda::DeviceLoader;
using cuda::DeviceOptions;
using cuda::DeviceResident;

struct DenseBatch {
  std::vector<std::int64_t> ids;
  std::vector<float> values;  // [B, columns]
  std::vector<std::int64_t> labels;

  friend bool operator==(const DenseBatch&, const DenseBatch&) = default;
};

class DeviceLoaderSparseTest : public testing::Test {
 protected:
  void SetUp() override { path_ = sparse_file(folder_, "anndata"); }
  void TearDown() override {
    gpu_->destroy_stream(stream_);
    EXPECT_EQ(gpu_->live(), 0) << "something was taken and not given back";
  }

  [[nodiscard]] Loader host_loader(std::int64_t batch_size = 16) const {
    return Loader(Dataset::open(path_, {.labels = "obs/label"}),
                  {.batch_size = batch_size, .seed = 5, .io = {.num_threads = 2}});
  }
  [[nodiscard]] DeviceLoader device_loader(const DeviceOptions& options,
                                           std::int64_t batch_size = 16) const {
    return internal::Access::make<DeviceLoader>(gpu_, host_loader(batch_size), options);
  }

  [[nodiscard]] DenseBatch read(const DeviceBatch& batch) const {
    DenseBatch read;
    read.ids.assign(batch.sample_ids().begin(), batch.sample_ids().end());
    EXPECT_EQ(batch.leading().shape(), (Shape{batch.size(), kSparseColumns}));
    EXPECT_TRUE(batch["X"] == batch.leading());
    read.values.resize(read.ids.size() * static_cast<std::size_t>(kSparseColumns));
    read.labels.resize(read.ids.size());
    gpu_->run_on(stream_, [&read, rows = batch.leading(), labels = batch.labels()] {
      std::memcpy(read.values.data(), rows.data(), rows.size_bytes());
      std::memcpy(read.labels.data(), labels.data(), labels.size_bytes());
    });
    gpu_->synchronize(stream_);
    return read;
  }
  [[nodiscard]] std::vector<DenseBatch> drain(DeviceLoader& loader) const {
    std::vector<DenseBatch> all;
    while (const auto batch = loader.next(stream_)) all.push_back(read(*batch));
    return all;
  }
  [[nodiscard]] std::vector<DenseBatch> epoch_of(DeviceLoader& loader, std::int64_t epoch) const {
    loader.start_epoch(epoch);
    return drain(loader);
  }

  static void expect_rows(const DenseBatch& batch) {
    for (std::size_t i = 0; i < batch.ids.size(); ++i) {
      std::vector<float> expected(static_cast<std::size_t>(kSparseColumns));
      for (const std::int64_t column : sparse_columns(batch.ids[i])) {
        expected[static_cast<std::size_t>(column)] =
            static_cast<float>(sparse_value(batch.ids[i], column));
      }
      const auto row = batch.values.begin() + static_cast<std::ptrdiff_t>(i * expected.size());
      ASSERT_TRUE(std::equal(expected.begin(), expected.end(), row)) << "row " << batch.ids[i];
    }
  }

  ScratchFolder folder_;
  std::string path_;
  std::shared_ptr<WatchedGpu> gpu_ = std::make_shared<WatchedGpu>();
  device::StreamHandle stream_ = gpu_->create_stream();
};

TEST_F(DeviceLoaderSparseTest, DeliversTheRowsOfTheHostDense) {
  std::vector<std::vector<std::int64_t>> order;
  std::vector<std::int64_t> labels;
  Loader host = host_loader();
  for (const Batch& batch : host.epoch(0)) {
    order.emplace_back(batch.sample_ids().begin(), batch.sample_ids().end());
    const auto values = batch.labels().values<std::int64_t>();
    labels.insert(labels.end(), values.begin(), values.end());
  }
  for (const std::int64_t batches : {1, 3}) {
    for (const DeviceResident resident : {DeviceResident::off, DeviceResident::require}) {
      DeviceLoader loader = device_loader(
          {.echo_buffer_batches = batches, .resident = resident, .resident_share = 1});
      const std::vector<DenseBatch> all = epoch_of(loader, 0);
      ASSERT_EQ(all.size(), order.size());
      std::vector<std::int64_t> there;
      for (std::size_t i = 0; i < all.size(); ++i) {
        EXPECT_EQ(all[i].ids, order[i]);
        expect_rows(all[i]);
        there.insert(there.end(), all[i].labels.begin(), all[i].labels.end());
      }
      EXPECT_EQ(there, labels);
      EXPECT_EQ(loader.stats().resident, resident == DeviceResident::require);
      EXPECT_GT(loader.stats().bytes_uploaded, 0);
    }
  }
}

TEST_F(DeviceLoaderSparseTest, EchoDealsRowsAnew) {
  for (const DeviceResident resident : {DeviceResident::off, DeviceResident::require}) {
    DeviceLoader loader = device_loader(
        {.echo_buffer_batches = 4, .echo = 3, .resident = resident, .resident_share = 1});
    std::vector<std::int64_t> times(static_cast<std::size_t>(kSparseRows));
    for (const DenseBatch& batch : epoch_of(loader, 2)) {
      expect_rows(batch);
      for (const std::int64_t id : batch.ids) ++times[static_cast<std::size_t>(id)];
    }
    EXPECT_TRUE(std::all_of(times.begin(), times.end(), [](std::int64_t n) { return n == 3; }));
  }
}

TEST_F(DeviceLoaderSparseTest, AnEchoBufferGrowsForLongRows) {
  DeviceLoader loader = device_loader({.resident = DeviceResident::off}, 1);
  const std::int64_t before = loader.device_bytes();
  for (const DenseBatch& batch : epoch_of(loader, 0)) expect_rows(batch);
  EXPECT_GT(loader.device_bytes(), before);
}

TEST_F(DeviceLoaderSparseTest, GoesOnFromAState) {
  for (const DeviceResident resident : {DeviceResident::off, DeviceResident::require}) {
    const DeviceOptions options{
        .echo_buffer_batches = 2, .echo = 2, .resident = resident, .resident_share = 1};
    DeviceLoader loader = device_loader(options);
    loader.start_epoch(1);
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(loader.next(stream_));
    const std::string state = loader.state();
    const std::vector<DenseBatch> rest = drain(loader);
    DeviceLoader again = device_loader(options);
    again.restore(state);
    EXPECT_EQ(drain(again), rest);
  }
}

TEST_F(DeviceLoaderSparseTest, OptionsOfImagesAreRefused) {
  expect_error(ErrorCode::invalid_argument, {path_, "normalize is of images"},
               [&] { (void)device_loader({.normalize = {.flip = true}}); });
  expect_error(ErrorCode::invalid_argument, {"binary makes every value 1"},
               [&] { (void)device_loader({.dense = {.binary = true, .log1p = true}}); });
  DeviceLoader loader = device_loader({.dense = {.binary = true}});
  loader.start_epoch(0);
  const auto batch = loader.next(stream_);
  ASSERT_TRUE(batch);
  expect_error(ErrorCode::unsupported, {"X", "take them with leading()"},
               [&] { (void)batch->images(); });
}

}  // namespace
}  // namespace chunkio::test
