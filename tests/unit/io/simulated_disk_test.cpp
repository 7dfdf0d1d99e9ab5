#include "io/simulated_disk.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <future>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <chunkio/dataset.hpp>
#include <chunkio/loader.hpp>

#include "base/access.hpp"
#include "sources/source_select.hpp"
#include "sources/verifying_source.hpp"
#include "support/errors.hpp"
#include "support/h5_files.hpp"
#include "support/pixels.hpp"
#include "support/placed_rows.hpp"
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
class SimulatedDiskTest : public testing::Test {
 protected:
  SimulatedDiskTest() { test::write_packed(path_, file_); }

  void open(const std::string& path, SourceKind kind, Verify verify = Verify::off) {
    source_.reset();
    dataset_.emplace(Dataset::open(path));
    disk_ = std::make_shared<DiskLimiter>(
        DiskLimit{.bytes_per_second = kBandwidth, .request_seconds = kLatency, .queue_depth = 1},
        [this] { return start_; });
    sources::SelectedSource selected = select(kind, disk_);
    source_ = std::move(selected.source);
    if (verify != Verify::off) {
      source_ = std::make_unique<sources::VerifyingSource>(
          internal::Access::impl(*dataset_), verify, std::move(source_), selected.bytes);
    }
  }
  [[nodiscard]] sources::SelectedSource select(SourceKind kind,
                                               const std::shared_ptr<DiskLimiter>& disk) const {
    return sources::select_source(
        internal::Access::impl(*dataset_), internal::Access::impl(*dataset_)->leading,
        {.kind = kind, .group_samples = kChunk, .disk = disk, .disk_offset = 1 << 20});
  }

  [[nodiscard]] RowGroup group(std::int64_t number) const {
    return {number * kChunk, std::min(kChunk, dataset_->size() - number * kChunk)};
  }
  [[nodiscard]] std::int64_t num_groups() const { return (dataset_->size() + kChunk - 1) / kChunk; }
  [[nodiscard]] std::unique_ptr<const ByteSource> prefetch(std::int64_t number) const {
    const RowGroup rows = group(number);
    return source_->prefetch(rows, {rows.first_row, rows.first_row + rows.num_rows});
  }
  ReadCost read_group(const RowGroup& rows, const std::vector<std::uint32_t>& wanted) const {
    return test::place_rows(*source_, rows, wanted, *dataset_);
  }
  ReadCost read_group(std::int64_t number, const ByteSource* prefetched = nullptr) const {
    RowGroup whole = group(number);
    whole.prefetched = prefetched;
    return read_group(whole, test::all_rows(whole));
  }
  /// What the disk was asked for so far must be these bytes in so many requests, give or take the
  /// rounding: a byte takes a nanosecond, a request 1000.
  void expect_charged(std::int64_t bytes, std::int64_t requests) const {
    EXPECT_LE(std::abs(charged() - (bytes + requests * 1000)), 1)
        << charged() << " instead of " << bytes << " bytes in " << requests << " requests";
  }
  [[nodiscard]] std::int64_t charged() const {
    return std::chrono::nanoseconds(disk_->submit_more(0) - start_).count();
  }

  test::ScratchFolder scratch_;
  std::string path_ = scratch_.file("pictures.h5");
  test::PackedFile file_{.num_samples = 30, .chunk_samples = kChunk};
  std::int64_t all_bytes_ = file_.num_samples * file_.sample_bytes();
  Clock::time_point start_ = Clock::now();
  std::optional<Dataset> dataset_;
  std::shared_ptr<DiskLimiter> disk_;
  std::unique_ptr<ChunkSource> source_;
};

TEST_F(SimulatedDiskTest, EveryByteIsChargedOncePrefetchedOrNot) {
  for (const SourceKind kind : {SourceKind::scatter, SourceKind::direct, SourceKind::hdf5}) {
    for (const bool ahead : {false, true}) {
      SCOPED_TRACE(to_string(kind));
      open(path_, kind);
      std::vector<std::unique_ptr<const ByteSource>> prefetched(
          static_cast<std::size_t>(num_groups()));
      for (std::int64_t i = 0; ahead && i < num_groups(); ++i) {
        prefetched[static_cast<std::size_t>(i)] = prefetch(i);
      }
      // One request: each group begins where the last one ended.
      const bool charged = ahead && kind != SourceKind::hdf5;
      expect_charged(charged ? all_bytes_ : 0, charged ? 1 : 0);
      for (std::int64_t i = 0; i < num_groups(); ++i) {
        read_group(i, prefetched[static_cast<std::size_t>(i)].get());
      }
      expect_charged(all_bytes_, 1);
      // They are in the page cache, and charged again all the same.
      read_group(0);
      expect_charged(all_bytes_ + kChunk * file_.sample_bytes(), 2);
    }
  }
}

TEST_F(SimulatedDiskTest, EachPrefetchIsForItsOwnRead) {
  open(path_, SourceKind::scatter);
  const auto first = prefetch(1);
  const auto second = prefetch(1);
  expect_charged(2 * kChunk * file_.sample_bytes(), 2);
  read_group(1, first.get());
  read_group(1, second.get());
  expect_charged(2 * kChunk * file_.sample_bytes(), 2);
  // One that is given up makes no later read free.
  static_cast<void>(prefetch(1));
  read_group(1);
  expect_charged(4 * kChunk * file_.sample_bytes(), 4);
}

TEST_F(SimulatedDiskTest, RangesOfACutSampleAreAskedForOneByOneUnlessTheyAreReadAhead) {
  dataset_.emplace(Dataset::open(test::h5py_file(scratch_, "large_rows_cut")));
  constexpr double kSlow = 2e-3;
  constexpr double kRanges = 2 * 2;
  const DiskLimit any_number{.request_seconds = kSlow};
  const auto slow = select(SourceKind::direct, std::make_shared<DiskLimiter>(any_number));
  // By the clock on the wall: a busy machine may take the time of a wait for something else.
  const Clock::time_point begin = Clock::now();
  test::place_rows(*slow.source, {0, 3}, {0}, *dataset_);
  EXPECT_GE(std::chrono::duration<double>(Clock::now() - begin).count(), kRanges * kSlow);

  const auto still = std::make_shared<DiskLimiter>(any_number, [this] { return start_; });
  const auto ahead = select(SourceKind::direct, still);
  EXPECT_NE(ahead.source->prefetch({0, 3}, {0, 1}), nullptr);
  EXPECT_LT(std::chrono::duration<double>(still->submit_more(0) - start_).count(), 2 * kSlow);
}

TEST_F(SimulatedDiskTest, GroupsElsewhereOnTheDiskAreRequestsOfTheirOwn) {
  open(path_, SourceKind::scatter);
  for (const std::int64_t number : {2, 0, 3, 1}) read_group(number);
  expect_charged(all_bytes_, 4);
}

TEST_F(SimulatedDiskTest, SmallHolesBetweenRowsAreChargedAndLargeOnesAreNot) {
  open(path_, SourceKind::scatter);
  read_group(group(1), {1, 6});
  expect_charged(6 * file_.sample_bytes(), 1);

  // Two rows are more than what is read to get from one row to the next.
  const test::PackedFile large{
      .num_samples = 2 * kChunk, .height = 128, .width = 90, .chunk_samples = kChunk};
  const std::string path = scratch_.file("large.h5");
  test::write_packed(path, large);
  for (const SourceKind kind : {SourceKind::scatter, SourceKind::hdf5}) {
    SCOPED_TRACE(to_string(kind));
    open(path, kind);
    EXPECT_EQ(read_group(group(1), {0, 2, 3, 6}).bytes_read, 5 * large.sample_bytes());
    expect_charged(5 * large.sample_bytes(), 2);
    // All of what was prefetched is on its way.
    open(path, kind);
    const auto prefetched = prefetch(1);
    RowGroup rows = group(1);
    rows.prefetched = prefetched.get();
    read_group(rows, {0, 7});
    const bool ahead = kind != SourceKind::hdf5;
    expect_charged((ahead ? 8 : 2) * large.sample_bytes(), ahead ? 1 : 2);
  }
}

TEST_F(SimulatedDiskTest, FilteredChunksAreChargedAsTheyAreStored) {
  const std::string path = test::h5py_file(scratch_, "deflate");
  for (const SourceKind kind : {SourceKind::direct, SourceKind::hdf5}) {
    SCOPED_TRACE(to_string(kind));
    open(path, kind);
    const h5::StoredArray& images = *internal::Access::impl(*dataset_)->leading;
    const std::int64_t k = images.stored.chunk_shape[0];
    const std::int64_t stored = images.index->find(std::array<std::int64_t, 4>{}).stored_bytes;
    ASSERT_LT(stored, k * dataset_->info().sample_bytes());
    read_group({0, k}, {0});
    if (kind == SourceKind::direct) {
      expect_charged(stored, 1);
    } else {
      // libhdf5 reads nodes of its index, too.
      EXPECT_GE(charged(), stored + 1000);
      EXPECT_LT(charged(), stored + 10'000);
    }
  }
}

TEST_F(SimulatedDiskTest, ChunksReadWholeForTheirDigestAreChargedWhole) {
  open(path_, SourceKind::scatter, Verify::first_epoch);
  read_group(group(1), {3});
  expect_charged(kChunk * file_.sample_bytes(), 1);
  read_group(group(1), {3});
  // Inside of what the head has just passed.
  expect_charged((kChunk + 1) * file_.sample_bytes(), 1);
}

TEST_F(SimulatedDiskTest, TheWaitCountsAsReading) {
  dataset_.emplace(Dataset::open(path_));
  const auto slow =
      select(SourceKind::scatter, std::make_shared<DiskLimiter>(DiskLimit{.request_seconds = 0.1}));
  // A busy machine may start the clock late, but not by most of it.
  EXPECT_GE(test::place_rows(*slow.source, group(0), {2}, *dataset_).read_seconds, 0.02);
}

TEST_F(SimulatedDiskTest, AStopEndsTheWait) {
  dataset_.emplace(Dataset::open(path_));
  for (const SourceKind kind : {SourceKind::scatter, SourceKind::hdf5}) {
    // The rows would take a minute.
    const auto slow = select(kind, std::make_shared<DiskLimiter>(DiskLimit{.bytes_per_second = 1}));
    std::stop_source stop;
    auto waiting = std::async(std::launch::async, [&] {
      std::vector<std::byte> memory(static_cast<std::size_t>(file_.sample_bytes()));
      const RowTarget row{.row = 0, .target = memory.data()};
      test::expect_error(ErrorCode::cancelled, {path_, "stopped"}, [&] {
        slow.source->place(group(0), {&row, 1}, stop.get_token());
      });
    });
    stop.request_stop();
    waiting.get();
  }
}

TEST_F(SimulatedDiskTest, AMappingCannotLieOnIt) {
  dataset_.emplace(Dataset::open(path_));
  const auto disk = std::make_shared<DiskLimiter>(DiskLimit{.bytes_per_second = 1e9});
  test::expect_error(ErrorCode::invalid_argument, {"mapped", "disk_limit", "let it be chosen"},
                     [&] { (void)select(SourceKind::mapped, disk); });
  EXPECT_EQ(select(SourceKind::automatic, disk).kind, SourceKind::scatter);
}

}  // namespace
}  // namespace chunkio::io
