#include "io/throttled_source.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <future>
#include <memory>
#include <numeric>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <chunkio/dataset.hpp>
#include <chunkio/loader.hpp>

#include "io/source_select.hpp"
#include "io/verifying_source.hpp"
#include "support/errors.hpp"
#include "support/h5_files.hpp"
#include "support/pixels.hpp"
#include "support/scratch.hpp"

namespace chunkio::io {
namespace {

using Clock = DiskLimiter::Clock;

constexpr std::int64_t kChunk = 8;
// A byte takes a nanosecond, so that nothing here takes noticeable time.
constexpr double kBandwidth = 1e9;
constexpr double kLatency = 1e-6;

/// A source on a disk whose clock stands still, so that what was charged is when the disk will be
/// idle.
class LimitedSourceTest : public testing::Test {
 protected:
  LimitedSourceTest() { test::write_packed(path_, file_); }

  void make(std::unique_ptr<ChunkSource> source, bool read_ahead = true, bool raw_bytes = false) {
    disk_ = std::make_shared<DiskLimiter>(
        DiskLimit{.bytes_per_second = kBandwidth, .request_seconds = kLatency, .queue_depth = 1},
        [this] { return start_; });
    source_ = std::make_unique<ThrottledSource>(
        dataset_->impl(), dataset_->impl()->images, std::move(source),
        ThrottledSource::OnDisk{
            .disk = disk_, .offset = 1 << 20, .read_ahead = read_ahead, .raw_bytes = raw_bytes});
  }
  void open(const std::string& path, SourceKind kind) {
    dataset_.emplace(Dataset::open(path));
    make(reader(kind), kind != SourceKind::hdf5, kind == SourceKind::hdf5);
  }
  [[nodiscard]] std::unique_ptr<ChunkSource> reader(SourceKind kind) const {
    return select_source(dataset_->impl(), dataset_->impl()->images,
                         {.kind = kind, .group_samples = kChunk})
        .source;
  }

  [[nodiscard]] RowGroup group(std::int64_t number) const {
    return {number * kChunk, std::min(kChunk, dataset_->size() - number * kChunk)};
  }
  [[nodiscard]] std::int64_t num_groups() const { return (dataset_->size() + kChunk - 1) / kChunk; }
  void prefetch(std::int64_t number) const {
    const RowGroup rows = group(number);
    source_->prefetch(rows, {rows.first_row, rows.first_row + rows.num_rows});
  }
  ReadCost read_group(const RowGroup& rows, const std::vector<std::uint32_t>& wanted) const {
    const auto bytes = static_cast<std::size_t>(dataset_->info().sample_bytes());
    std::vector<std::byte> memory(wanted.size() * bytes);
    std::vector<RowTarget> targets;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      targets.push_back({wanted[i], memory.data() + i * bytes});
    }
    return source_->place(rows, targets, {});
  }
  ReadCost read_group(std::int64_t number, bool prefetched = false) const {
    RowGroup whole = group(number);
    whole.prefetched = prefetched;
    std::vector<std::uint32_t> rows(static_cast<std::size_t>(whole.num_rows));
    std::iota(rows.begin(), rows.end(), 0U);
    return read_group(whole, rows);
  }
  /// What the disk was asked for so far must be these bytes in so many requests, give or take the
  /// rounding: a byte takes a nanosecond, a request 1000.
  void expect_charged(std::int64_t bytes, std::int64_t requests) const {
    const std::int64_t charged = std::chrono::nanoseconds(disk_->submit_more(0) - start_).count();
    EXPECT_LE(std::abs(charged - (bytes + requests * 1000)), 1)
        << charged << " instead of " << bytes << " bytes in " << requests << " requests";
  }

  test::ScratchFolder scratch_;
  std::string path_ = scratch_.file("pictures.h5");
  test::PackedFile file_{.num_samples = 30, .chunk_samples = kChunk};
  std::int64_t all_bytes_ = file_.num_samples * file_.sample_bytes();
  Clock::time_point start_ = Clock::now();
  std::optional<Dataset> dataset_;
  std::shared_ptr<DiskLimiter> disk_;
  std::unique_ptr<ThrottledSource> source_;
};

TEST_F(LimitedSourceTest, EveryByteIsChargedOncePrefetchedOrNot) {
  for (const SourceKind kind :
       {SourceKind::mapped, SourceKind::scatter, SourceKind::direct, SourceKind::hdf5}) {
    for (const bool prefetched : {false, true}) {
      open(path_, kind);
      for (std::int64_t i = 0; prefetched && i < num_groups(); ++i) {
        prefetch(i);
        prefetch(i);
      }
      SCOPED_TRACE(to_string(kind));
      // One request: each group begins where the last one ended.
      const bool ahead = prefetched && kind != SourceKind::hdf5;
      expect_charged(ahead ? all_bytes_ : 0, ahead ? 1 : 0);
      for (std::int64_t i = 0; i < num_groups(); ++i) read_group(i, prefetched);
      expect_charged(all_bytes_, 1);
      // They are in the page cache, and charged again all the same.
      read_group(0);
      expect_charged(all_bytes_ + kChunk * file_.sample_bytes(), 2);
    }
  }
}

TEST_F(LimitedSourceTest, AGroupReadThatOvertakesItsPrefetchIsChargedOnce) {
  open(path_, SourceKind::scatter);
  for (std::int64_t epoch = 1; epoch <= 3; ++epoch) {
    read_group(1, true);
    prefetch(1);
    expect_charged(epoch * kChunk * file_.sample_bytes(), epoch);
  }
  // It is not taken for that of the next group read.
  prefetch(1);
  expect_charged(4 * kChunk * file_.sample_bytes(), 4);
  read_group(1, true);
  expect_charged(4 * kChunk * file_.sample_bytes(), 4);
}

TEST_F(LimitedSourceTest, PrefetchesOfTwoEpochsAtOnceAreForTwoGroupReads) {
  open(path_, SourceKind::scatter);
  prefetch(1);
  prefetch(1);
  read_group(1, true);
  expect_charged(kChunk * file_.sample_bytes(), 1);
  read_group(1, true);
  expect_charged(2 * kChunk * file_.sample_bytes(), 2);
  prefetch(1);
  expect_charged(3 * kChunk * file_.sample_bytes(), 3);
}

TEST_F(LimitedSourceTest, GroupReadsThatWereGivenUpMakeNoLaterOneFree) {
  open(path_, SourceKind::scatter);
  prefetch(1);
  source_->cancel_prefetch();
  prefetch(1);
  read_group(1, true);
  expect_charged(2 * kChunk * file_.sample_bytes(), 2);
  // Nor is a prefetch that comes no more waited for.
  read_group(1, true);
  source_->cancel_prefetch();
  prefetch(1);
  expect_charged(4 * kChunk * file_.sample_bytes(), 4);
}

TEST_F(LimitedSourceTest, RangesOfACutSampleAreAskedForOneByOneUnlessTheyAreReadAhead) {
  dataset_.emplace(Dataset::open(test::h5py_file(scratch_, "odd_chunks")));
  constexpr double kSlow = 2e-3;
  constexpr double kRanges = 2 * 3 * 2;
  const auto source_on = [&](const std::shared_ptr<DiskLimiter>& disk) {
    return ThrottledSource(dataset_->impl(), dataset_->impl()->images, reader(SourceKind::direct),
                           {.disk = disk});
  };
  const DiskLimit any_number{.request_seconds = kSlow};
  std::vector<std::byte> memory(static_cast<std::size_t>(dataset_->info().sample_bytes()));
  const RowTarget row{.row = 0, .target = memory.data()};
  const ReadCost cost =
      source_on(std::make_shared<DiskLimiter>(any_number)).place({0, 7}, {&row, 1}, {});
  EXPECT_GE(cost.read_seconds, kRanges * kSlow);

  const auto still = std::make_shared<DiskLimiter>(any_number, [this] { return start_; });
  source_on(still).prefetch({0, 7}, {0, 1});
  EXPECT_LT(std::chrono::duration<double>(still->submit_more(0) - start_).count(), 2 * kSlow);
}

TEST_F(LimitedSourceTest, GroupsElsewhereOnTheDiskAreRequestsOfTheirOwn) {
  open(path_, SourceKind::scatter);
  for (const std::int64_t number : {2, 0, 3, 1}) read_group(number);
  expect_charged(all_bytes_, 4);
}

TEST_F(LimitedSourceTest, SmallHolesBetweenRowsAreChargedAndLargeOnesAreNot) {
  open(path_, SourceKind::scatter);
  read_group(group(1), {1, 6});
  expect_charged(6 * file_.sample_bytes(), 1);

  // Two rows are more than what is read to get from one row to the next.
  const test::PackedFile large{
      .num_samples = 2 * kChunk, .height = 128, .width = 90, .chunk_samples = kChunk};
  const std::string path = scratch_.file("large.h5");
  test::write_packed(path, large);
  for (const SourceKind kind : {SourceKind::mapped, SourceKind::scatter, SourceKind::hdf5}) {
    SCOPED_TRACE(to_string(kind));
    open(path, kind);
    EXPECT_EQ(read_group(group(1), {0, 2, 3, 6}).bytes_read, 5 * large.sample_bytes());
    expect_charged(5 * large.sample_bytes(), 2);
    // All of what was prefetched is on its way.
    open(path, kind);
    prefetch(1);
    RowGroup rows = group(1);
    rows.prefetched = true;
    read_group(rows, {0, 7});
    const bool ahead = kind != SourceKind::hdf5;
    expect_charged((ahead ? 8 : 2) * large.sample_bytes(), ahead ? 1 : 2);
  }
}

TEST_F(LimitedSourceTest, FilteredChunksAreChargedAsTheyAreStored) {
  const std::string path = test::h5py_file(scratch_, "deflate");
  for (const SourceKind kind : {SourceKind::direct, SourceKind::hdf5}) {
    SCOPED_TRACE(to_string(kind));
    open(path, kind);
    const h5::StoredArray& images = *dataset_->impl()->images;
    const std::int64_t k = images.stored.chunk_shape[0];
    const std::int64_t stored = images.index->find(std::array<std::int64_t, 4>{}).stored_bytes;
    ASSERT_LT(stored, k * dataset_->info().sample_bytes());
    read_group({0, k}, {0});
    expect_charged(stored, 1);
  }
}

TEST_F(LimitedSourceTest, ChunksReadWholeForTheirDigestAreChargedWhole) {
  dataset_.emplace(Dataset::open(path_));
  make(std::make_unique<VerifyingSource>(dataset_->impl(), Verify::first_epoch,
                                         reader(SourceKind::scatter), false));
  read_group(group(1), {3});
  expect_charged(kChunk * file_.sample_bytes(), 1);
  read_group(group(1), {3});
  expect_charged((kChunk + 1) * file_.sample_bytes(), 2);
}

TEST_F(LimitedSourceTest, WhatLibhdf5AloneCanFindIsChargedAfterwards) {
  dataset_.emplace(Dataset::open(test::h5py_file(scratch_, "virtual"), {.allow_external = true}));
  make(reader(SourceKind::hdf5), false, true);
  const ReadCost cost = read_group({0, 4}, {0, 1, 2, 3});
  EXPECT_GT(cost.bytes_read, 0);
  expect_charged(cost.bytes_read, 1);
}

TEST_F(LimitedSourceTest, TooManyPrefetchesAreChargedWhenTheyAreRead) {
  dataset_.emplace(Dataset::open(path_));
  make(reader(SourceKind::scatter));
  // No such rows are there to read, but they can be prefetched.
  for (std::int64_t i = 0; i < 3 * static_cast<std::int64_t>(ThrottledSource::kMaxPrefetched);
       ++i) {
    source_->prefetch(group(0), {i, i + 1});
  }
  const auto prefetched = static_cast<std::int64_t>(ThrottledSource::kMaxPrefetched);
  expect_charged(prefetched * file_.sample_bytes(), 1);
  // Long after their bytes have come, they are forgotten. The disk was idle since.
  start_ += std::chrono::minutes(1);
  prefetch(0);
  expect_charged(kChunk * file_.sample_bytes(), 1);
}

TEST_F(LimitedSourceTest, TheWaitCountsAsReading) {
  dataset_.emplace(Dataset::open(path_));
  disk_ = std::make_shared<DiskLimiter>(DiskLimit{.request_seconds = 0.01});
  ThrottledSource source(dataset_->impl(), dataset_->impl()->images, reader(SourceKind::mapped),
                         {.disk = disk_});
  std::vector<std::byte> memory(static_cast<std::size_t>(file_.sample_bytes()));
  const RowTarget row{.row = 2, .target = memory.data()};
  EXPECT_GE(source.place(group(0), {&row, 1}, {}).read_seconds, 0.01);
  EXPECT_EQ(memory, test::image(2, file_.sample_bytes()));
}

TEST_F(LimitedSourceTest, AStopEndsTheWait) {
  dataset_.emplace(Dataset::open(path_));
  // The rows would take a minute.
  disk_ = std::make_shared<DiskLimiter>(DiskLimit{.bytes_per_second = 1});
  ThrottledSource source(dataset_->impl(), dataset_->impl()->images, reader(SourceKind::mapped),
                         {.disk = disk_});
  std::stop_source stop;
  auto waiting = std::async(std::launch::async, [&] {
    std::vector<std::byte> memory(static_cast<std::size_t>(file_.sample_bytes()));
    const RowTarget row{.row = 0, .target = memory.data()};
    test::expect_error(ErrorCode::cancelled, {path_, "stopped"}, [&] {
      source.place(group(0), {&row, 1}, stop.get_token());
    });
  });
  stop.request_stop();
  waiting.get();
}

}  // namespace
}  // namespace chunkio::io
