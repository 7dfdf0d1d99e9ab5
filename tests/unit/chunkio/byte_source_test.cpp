#include <atomic>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <chunkio/byte_source.hpp>
#include <chunkio/chunkio.hpp>

#include "base/access.hpp"
#include "h5/dataset_impl.hpp"
#include "support/byte_sources.hpp"
#include "support/errors.hpp"
#include "support/h5_files.hpp"
#include "support/pixels.hpp"
#include "support/scratch.hpp"

namespace chunkio {
namespace {

using test::CountingSource;
using test::expect_error;

/// A file in memory: what a program could write with the public header alone.
class InMemory final : public ByteSource {
 public:
  explicit InMemory(const std::string& path) : bytes_(test::read_bytes(path)) {}

  [[nodiscard]] const std::string& name() const noexcept override { return name_; }
  [[nodiscard]] std::int64_t size() const noexcept override { return std::ssize(bytes_); }
  [[nodiscard]] std::uint64_t version() const override { return changed; }
  ReadTime read_at(std::int64_t offset, std::span<std::byte> out,
                   const std::stop_token& /*stop*/) const override {
    if (offset + std::ssize(out) > std::ssize(bytes_)) {
      throw Error(ErrorCode::corrupt_data, name_ + " ends early");
    }
    std::memcpy(out.data(), bytes_.data() + offset, out.size());
    return {};
  }

  std::atomic<std::uint64_t> changed = 0;

 private:
  std::string name_ = "memory:train.h5";
  std::vector<std::uint8_t> bytes_;
};

/// Every sample of an epoch: its image and its label by its row.
struct Epoch {
  std::map<std::int64_t, std::vector<std::byte>> images;
  std::map<std::int64_t, std::int64_t> labels;
  bool operator==(const Epoch&) const = default;
};

Epoch epoch_of(const Dataset& dataset, const LoaderOptions& options = {}) {
  Loader loader(dataset, options);
  Epoch epoch;
  loader.start_epoch(0);
  const auto bytes = static_cast<std::size_t>(dataset.info().sample_bytes());
  while (const auto batch = loader.next()) {
    const auto ids = batch->sample_ids();
    const auto* pixels = static_cast<const std::byte*>(batch->images().data());
    for (std::size_t i = 0; i < ids.size(); ++i) {
      epoch.images[ids[i]] = {pixels + i * bytes, pixels + (i + 1) * bytes};
      if (dataset.info().labels) epoch.labels[ids[i]] = batch->labels().values<std::int64_t>()[i];
    }
  }
  return epoch;
}

class ByteSourceTest : public testing::Test {
 protected:
  ByteSourceTest() { test::write_packed(path_, file_); }

  test::ScratchFolder folder_;
  std::string path_ = folder_.file("train.h5");
  test::PackedFile file_{.num_samples = 1000, .height = 16, .width = 16, .chunk_samples = 64};
};

TEST_F(ByteSourceTest, AnySourceIsReadAsItsFileIs) {
  // In one run, filtered chunks, and what libhdf5 alone can read.
  std::vector<std::string> paths{
      path_, test::h5py_file(folder_, "deflate"), test::h5py_file(folder_, "btree1"),
      test::h5py_file(folder_, "user_block"), test::h5py_file(folder_, "scaleoffset")};
  for (const std::string& path : paths) {
    SCOPED_TRACE(path);
    const Dataset file = Dataset::open(path);
    const Dataset memory = Dataset::open(std::make_shared<InMemory>(path));
    EXPECT_EQ(memory.info().path, "memory:train.h5");
    EXPECT_EQ(memory.info().num_samples, file.info().num_samples);
    const Epoch expected = epoch_of(file);
    EXPECT_EQ(std::ssize(expected.images), file.size());
    EXPECT_EQ(epoch_of(memory), expected);
    EXPECT_EQ(epoch_of(memory, {.io = {.direct_io = true}}), expected);
    EXPECT_EQ(epoch_of(memory, {.io = {.source = SourceKind::hdf5}}), expected);
    EXPECT_EQ(epoch_of(memory, {.io = {.disk_limit = DiskLimit{.bytes_per_second = 1e9}}}),
              expected);
  }
  EXPECT_TRUE(verify_chunks(Dataset::open(std::make_shared<InMemory>(path_))).damaged.empty());
}

TEST_F(ByteSourceTest, ASourceThatChangedIsAnErrorAndNoBatch) {
  const auto memory = std::make_shared<InMemory>(path_);
  const Dataset dataset = Dataset::open(memory);
  EXPECT_EQ(std::ssize(epoch_of(dataset).images), file_.num_samples);
  memory->changed = 1;
  expect_error(ErrorCode::corrupt_data, {"memory:train.h5", "was changed", "open it again"},
               [&] { epoch_of(dataset); });
}

TEST_F(ByteSourceTest, WhatTheSourceThrowsArrivesWithItsCodeAndTheRows) {
  const auto broken = [&](ByteRange where) {
    return std::make_shared<test::FailingSource>(std::make_shared<InMemory>(path_), where);
  };
  // Where libhdf5 reads, too.
  expect_error(ErrorCode::io_failed, {"memory:train.h5", "the disk has failed"}, [&] {
    Dataset::open(broken({0, 8}));
  });
  expect_error(ErrorCode::io_failed, {"memory:train.h5", "the disk has failed"}, [&] {
    Dataset::open(broken({100, 101}));
  });
  const std::int64_t images =
      internal::Access::impl(Dataset::open(path_))->leading->linear_offset.value() +
      70 * file_.sample_bytes();
  const Dataset dataset = Dataset::open(broken({images, images + 1}));
  for (const SourceKind kind : {SourceKind::automatic, SourceKind::direct, SourceKind::hdf5}) {
    expect_error(ErrorCode::io_failed, {"memory:train.h5", "the disk has failed"},
                 [&] { epoch_of(dataset, {.io = {.source = kind}}); });
  }
}

TEST_F(ByteSourceTest, NoSourceAndMappingsAreRefused) {
  expect_error(ErrorCode::invalid_argument, {"no byte source"},
               [] { Dataset::open(std::shared_ptr<const ByteSource>()); });
  const Dataset dataset = Dataset::open(std::make_shared<InMemory>(path_));
  expect_error(ErrorCode::invalid_argument,
               {"memory:train.h5", "mapped source reads local files", "scatter"},
               [&] { epoch_of(dataset, {.io = {.source = SourceKind::mapped}}); });
}

/// What a remote source would be asked for. A file of ours opens with few requests, and nothing is
/// read twice.
TEST_F(ByteSourceTest, RequestsAndBytesOfOpeningAnEpochAndVerifyingAreCounted) {
  const auto source = std::make_shared<CountingSource>(path_);
  const Dataset dataset = Dataset::open(source);
  EXPECT_LE(source->requests, 60);
  EXPECT_LE(source->bytes, 128 << 10);

  const std::int64_t image_bytes = file_.num_samples * file_.sample_bytes();
  const auto count = [&](const auto& work) {
    source->requests = source->bytes = 0;
    work();
  };
  count([&] { epoch_of(dataset, {.io = {.num_threads = 2, .num_epochs = 1}}); });
  // All chunks at once, since they are small, and the labels and the weights, which are kept in
  // memory, before.
  EXPECT_GE(source->requests, 3);
  EXPECT_LE(source->requests, 1 + 20);
  EXPECT_GE(source->bytes, image_bytes);
  EXPECT_LE(source->bytes, image_bytes + file_.num_samples * 16 + 4096);

  count([&] { EXPECT_TRUE(verify_chunks(dataset).damaged.empty()); });
  EXPECT_GE(source->bytes, image_bytes);
  // Digests, labels, weights and the number of the source beside the images.
  EXPECT_LE(source->bytes, image_bytes + file_.num_samples * 40 + 64 * 1024);
  EXPECT_LE(source->requests, 4 * dataset.info().num_chunks + 20);
}

}  // namespace
}  // namespace chunkio
