/// A WindowReader over images that a scripted source makes up, and what must come out of it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "read/window_reader.hpp"
#include "support/pixels.hpp"

namespace chunkio::test {

/// What sources are to do, and what they were asked for. Shared by all sources of one reader.
struct SourceScript {
  struct Event {
    bool placed = false;  ///< Else prefetched.
    bool mask = false;    ///< Of the streamed field, not of the images.
    std::int64_t first_row = 0;
    RowRange wanted = {};     ///< Of what is prefetched.
    bool prefetched = false;  ///< Of what is placed.
  };

  std::atomic<std::int64_t> calls{0};
  std::int64_t fail_at = -1;  ///< The call that throws ...
  ErrorCode fail_code = ErrorCode::io_failed;
  /// ... and the row groups that always do.
  std::function<bool(std::int64_t first_row, bool mask)> damaged;
  /// Rows that do not match their digests, in chunks of that many rows.
  std::function<bool(std::int64_t row, bool mask)> mismatched;
  std::int64_t digest_chunk = 14;
  std::chrono::microseconds delay{0};
  std::function<void(std::int64_t call)> at_call;
  std::function<void(std::span<const RowTarget> rows)> at_rows;
  std::function<void()> at_prefetch;

  [[nodiscard]] std::vector<Event> events() {
    const std::lock_guard lock(mutex);
    return log;
  }
  void record(const Event& event) {
    const std::lock_guard lock(mutex);
    log.push_back(event);
  }

  std::mutex mutex;
  std::vector<Event> log;
  std::atomic<std::int64_t> prefetched{0};  ///< What was prefetched and is not given up.
};

/// What FakeSource prefetched: it says of which rows.
class FakePrefetched final : public ByteSource {
 public:
  FakePrefetched(std::shared_ptr<SourceScript> script, std::int64_t row)
      : first_row(row), script_(std::move(script)) {
    ++script_->prefetched;
  }
  FakePrefetched(const FakePrefetched&) = delete;
  FakePrefetched& operator=(const FakePrefetched&) = delete;
  ~FakePrefetched() override { --script_->prefetched; }

  [[nodiscard]] const std::string& name() const noexcept override { return name_; }
  [[nodiscard]] std::int64_t size() const noexcept override { return 0; }
  [[nodiscard]] std::uint64_t version() const override { return 0; }
  ReadTime read_at(std::int64_t /*offset*/, std::span<std::byte> /*out*/,
                   const std::stop_token& /*stop*/) const override {
    return {};
  }

  const std::int64_t first_row;

 private:
  std::shared_ptr<SourceScript> script_;
  std::string name_;
};

/// Delivers image(row + salt) of `row_bytes` bytes.
class FakeSource final : public ChunkSource {
 public:
  FakeSource(std::shared_ptr<SourceScript> script, std::int64_t row_bytes, std::int64_t salt = 0)
      : script_(std::move(script)), row_bytes_(row_bytes), salt_(salt) {}

  ReadCost place(const RowGroup& group, std::span<const RowTarget> rows,
                 std::stop_token stop) const override {
    const std::int64_t call = script_->calls.fetch_add(1);
    script_->record({.placed = true,
                     .mask = salt_ != 0,
                     .first_row = group.first_row,
                     .prefetched = group.prefetched != nullptr});
    if (group.prefetched != nullptr) {
      EXPECT_EQ(dynamic_cast<const FakePrefetched&>(*group.prefetched).first_row, group.first_row);
    }
    if (script_->at_call) script_->at_call(call);
    if (script_->at_rows) script_->at_rows(rows);
    std::size_t written = 0;
    const bool fails = call == script_->fail_at ||
                       (script_->damaged && script_->damaged(group.first_row, salt_ != 0));
    if (script_->delay.count() > 0) std::this_thread::sleep_for(script_->delay);
    if (stop.stop_requested()) throw Error(ErrorCode::cancelled, "stopped");
    std::int64_t previous = -1;
    for (const RowTarget& row : rows) {
      EXPECT_LT(row.row, group.num_rows);
      EXPECT_GE(std::int64_t{row.row}, previous);
      previous = row.row;
      // A failure comes in the middle: some rows are there, some are not.
      if (fails && written++ >= rows.size() / 2) break;
      if (is_mismatched(group.first_row + row.row)) continue;
      const auto bytes = image(group.first_row + row.row + salt_, row_bytes_);
      std::memcpy(row.target, bytes.data(), bytes.size());
    }
    if (fails) throw Error(script_->fail_code, "call " + std::to_string(call));
    if (script_->mismatched) throw_mismatch(group, rows);
    return {.bytes_read = static_cast<std::int64_t>(rows.size()) * row_bytes_};
  }
  [[nodiscard]] std::unique_ptr<const ByteSource> prefetch(
      const RowGroup& group, const RowRange& wanted) const noexcept override {
    if (script_->at_prefetch) script_->at_prefetch();
    EXPECT_GE(wanted.begin, group.first_row);
    EXPECT_LT(wanted.begin, wanted.end);
    EXPECT_LE(wanted.end, group.first_row + group.num_rows);
    script_->record(
        {.placed = false, .mask = salt_ != 0, .first_row = group.first_row, .wanted = wanted});
    return std::make_unique<const FakePrefetched>(script_, group.first_row);
  }
  [[nodiscard]] std::int64_t memory_bytes(std::int64_t) const noexcept override { return 0; }

 private:
  [[nodiscard]] bool is_mismatched(std::int64_t row) const {
    return script_->mismatched && script_->mismatched(row, salt_ != 0);
  }
  /// As of chunks that are compared whole, one wanted row of which is enough.
  void throw_mismatch(const RowGroup& group, std::span<const RowTarget> rows) const {
    DamagedRowList mismatched;
    std::int64_t last_chunk = -1;
    for (const RowTarget& row : rows) {
      const std::int64_t chunk = (group.first_row + row.row) / script_->digest_chunk;
      if (chunk == last_chunk) continue;
      last_chunk = chunk;
      std::vector<RowRange> differing;
      for (std::int64_t i = chunk * script_->digest_chunk; i < (chunk + 1) * script_->digest_chunk;
           ++i) {
        if (is_mismatched(i)) differing.push_back({i, i + 1});
      }
      if (differing.empty()) continue;
      mismatched.add({differing, "mismatch in chunk " + std::to_string(chunk)});
    }
    mismatched.raise({});
  }

  std::shared_ptr<SourceScript> script_;
  std::int64_t row_bytes_;
  std::int64_t salt_;
};

struct ReaderCase {
  std::int64_t num_samples = 100;
  std::int64_t group_samples = 7;
  OrderOptions order{.seed = 5, .batch_size = 8, .window_groups = 3};
  std::int64_t threads = 2;
  std::int64_t max_held = 3;
  std::optional<std::int64_t> num_epochs = {};
  std::int64_t prefetch_bytes = read::WindowScheduler::kPrefetchBytes;
  std::optional<RowSelection> rows = {};
  bool masks = false;  ///< A streamed field beside the images.
  OnError on_error = OnError::raise;
  std::function<void()> check_whole_file = {};

  [[nodiscard]] RowGroups groups() const {
    return rows ? RowGroups(group_samples, num_samples, *rows)
                : RowGroups(group_samples, num_samples);
  }
  [[nodiscard]] EpochOrder order_of(std::int64_t epoch) const {
    return EpochOrder(groups(), order, epoch);
  }
};

struct ReaderFixture {
  static constexpr std::int64_t kSampleBytes = 24;
  static constexpr std::int64_t kMaskBytes = 10;
  static constexpr std::int64_t kMaskSalt = 1'000'000;

  explicit ReaderFixture(const ReaderCase& setup) : order(setup.order_of(0)) {
    read::RingLayout layout{
        .rows = std::max<std::int64_t>(order.num_steps() == 0 ? 1 : order.batch_rows(0), 1),
        .leading = {.info = {"images", DType::uint8, Shape{2, 4, 3}}, .row_bytes = kSampleBytes},
        .has_labels = true,
        .fields = {{.info = {"labels", DType::int64, Shape{}}, .row_bytes = 8}}};
    std::vector<std::int64_t> labels;
    for (std::int64_t row = 0; row < setup.num_samples; ++row) labels.push_back(label_of(row));
    read::CachedFields cached{as_bytes(labels)};
    std::vector<read::StreamedArray> arrays;
    arrays.push_back(
        {.source = std::make_unique<FakeSource>(script, kSampleBytes), .row_bytes = kSampleBytes});
    if (setup.masks) {
      layout.fields.push_back(
          {.info = {"masks", DType::uint8, Shape{kMaskBytes}}, .row_bytes = kMaskBytes});
      cached.emplace_back();
      arrays.push_back({.source = std::make_unique<FakeSource>(script, kMaskBytes, kMaskSalt),
                        .row_bytes = kMaskBytes,
                        .field = 1});
    }
    const std::int64_t window = plan::max_window_samples(order, 1);
    const std::int64_t span = window / plan::lane_batch(order) + 2;
    num_slots = 2 * span + setup.max_held;
    ring = std::make_shared<read::Ring>(std::move(layout), num_slots);
    reader = std::make_unique<read::WindowReader>(
        setup.groups(),
        read::WindowReaderOptions{.order = setup.order,
                                  .num_threads = setup.threads,
                                  .max_held = setup.max_held,
                                  .num_epochs = setup.num_epochs,
                                  .prefetch_bytes = setup.prefetch_bytes,
                                  .on_error = setup.on_error,
                                  .check_whole_file = setup.check_whole_file},
        std::move(arrays), std::move(cached), ring);
  }

  /// The rest of an epoch, which nobody looks at.
  void drain() const {
    while (reader->next()) {
    }
  }

  EpochOrder order;            ///< Of epoch 0.
  std::int64_t num_slots = 0;  ///< Of the ring.
  std::shared_ptr<SourceScript> script = std::make_shared<SourceScript>();
  std::shared_ptr<read::Ring> ring;
  std::unique_ptr<read::WindowReader> reader;
};

/// Every byte of a batch is what `samples` say.
inline void expect_batch(const internal::BatchSlot& slot,
                         const std::vector<std::int64_t>& samples) {
  ASSERT_EQ(slot.rows, static_cast<std::int64_t>(samples.size()));
  const auto expect_row = [](const std::byte* values, std::size_t row,
                             const std::vector<std::byte>& expected) {
    ASSERT_EQ(std::memcmp(values + row * expected.size(), expected.data(), expected.size()), 0)
        << "row " << row;
  };
  for (std::size_t row = 0; row < samples.size(); ++row) {
    ASSERT_EQ(slot.sample_ids[row], samples[row]) << "row " << row;
    expect_row(slot.leading, row, image(samples[row], ReaderFixture::kSampleBytes));
    std::int64_t label = -1;
    std::memcpy(&label, slot.fields[0] + row * 8, 8);
    ASSERT_EQ(label, label_of(samples[row]));
    if (slot.fields.size() == 1) continue;
    expect_row(slot.fields[1], row,
               image(samples[row] + ReaderFixture::kMaskSalt, ReaderFixture::kMaskBytes));
  }
}

/// The rest of an epoch from `step` on, to which the reader was brought, and its end.
inline void expect_rest(ReaderFixture& fixture, const ReaderCase& setup, std::int64_t epoch,
                        std::int64_t step) {
  const EpochOrder order = setup.order_of(epoch);
  for (; step < order.num_steps(); ++step) {
    const auto slot = fixture.reader->next();
    ASSERT_TRUE(slot) << "epoch " << epoch << " ended at step " << step;
    EXPECT_EQ(slot->epoch, epoch);
    EXPECT_EQ(slot->step, step);
    expect_batch(*slot, order.batch(step));
    EXPECT_EQ(fixture.reader->position().epoch, epoch);
    EXPECT_EQ(fixture.reader->position().step, step + 1);
  }
  EXPECT_FALSE(fixture.reader->next());
  EXPECT_FALSE(fixture.reader->next()) << "the end of an epoch must stay the end";
}

inline void expect_epoch(ReaderFixture& fixture, const ReaderCase& setup, std::int64_t epoch) {
  fixture.reader->start(epoch);
  expect_rest(fixture, setup, epoch, 0);
}

}  // namespace chunkio::test

// The tests of the reader are about nothing else.
namespace chunkio::read {
using test::expect_batch;
using test::expect_epoch;
using test::expect_rest;
using Case = test::ReaderCase;
using Fixture = test::ReaderFixture;
}  // namespace chunkio::read
