#include "sources/trial_source.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/errors.hpp"

namespace chunkio::sources {
namespace {

/// What a source was asked for, and what it is to say.
struct Script {
  double seconds = 1.0;         ///< A group read costs, with non-temporal stores.
  double cached_seconds = 1.0;  ///< With ordinary ones.
  double once_seconds = 0.0;    ///< Besides, and only at first.
  double read_seconds = 0.0;    ///< Besides, waiting for the disk.
  double idle_seconds = 0.0;    ///< Besides, while other threads have the processor.
  std::optional<Error> error = {};
  std::int64_t own_bytes = 0, scratch_bytes = 0;
  std::vector<std::int64_t> reads = {};  ///< First rows.
  std::vector<std::int64_t> prefetched = {};
};

/// Writes the number of each row.
class FakeSource final : public ChunkSource {
 public:
  FakeSource(Script& script, double& clock) : script_(script), clock_(clock) {}

  ReadCost place(const RowGroup& group, std::span<const RowTarget> rows,
                 std::stop_token stop) const override {
    if (stop.stop_requested()) throw Error(ErrorCode::cancelled, "stopped");
    script_.reads.push_back(group.first_row);
    if (script_.error) throw Error(*script_.error);
    for (const RowTarget& row : rows) {
      *row.target = static_cast<std::byte>(group.first_row + row.row);
    }
    const double seconds =
        group.stores == base::Stores::cached ? script_.cached_seconds : script_.seconds;
    clock_ += seconds + script_.once_seconds;
    return {.bytes_read = 1,
            .read_seconds = script_.read_seconds,
            .copy_seconds = seconds + script_.idle_seconds + script_.once_seconds,
            .once_seconds = script_.once_seconds};
  }
  [[nodiscard]] std::unique_ptr<const ByteSource> prefetch(
      const RowGroup& group, const RowRange&) const noexcept override {
    script_.prefetched.push_back(group.first_row);
    return nullptr;
  }
  [[nodiscard]] std::int64_t memory_bytes(std::int64_t threads) const noexcept override {
    return script_.own_bytes + threads * script_.scratch_bytes;
  }

 private:
  Script& script_;
  double& clock_;
};

class TrialSourceTest : public testing::Test {
 protected:
  /// Turns of one group read of two rows.
  void make(std::int64_t row_bytes = 10) {
    const TrialLimits limits = {.turn_bytes = 2 * row_bytes, .num_turns = 2};
    trials_ = std::make_shared<SourceTrials>(std::vector{SourceKind::mapped, SourceKind::scatter},
                                             limits);
    std::vector<std::unique_ptr<ChunkSource>> sources;
    sources.push_back(std::make_unique<FakeSource>(mapped_, clock_));
    sources.push_back(std::make_unique<FakeSource>(scatter_, clock_));
    source_ = std::make_unique<TrialSource>(
        std::move(sources), trials_, row_bytes,
        [this](const RowRange& rows) {
          EXPECT_EQ(rows.end - rows.begin, 3);
          ++asked_;
          return cached_;
        },
        [this] { return clock_; });
  }
  /// Reads rows 1 and 3 of `count` more groups of four, which must come to their places.
  void read_group(int count) {
    for (int i = 0; i < count; ++i, first_row_ += 4) {
      std::byte at[2] = {std::byte{255}, std::byte{255}};
      const std::vector<RowTarget> rows{{.row = 1, .target = &at[1]}, {.row = 3, .target = &at[0]}};
      (void)source_->place({.first_row = first_row_, .num_rows = 4}, rows, stop_.get_token());
      EXPECT_EQ(at[1], static_cast<std::byte>(first_row_ + 1));
      EXPECT_EQ(at[0], static_cast<std::byte>(first_row_ + 3));
    }
  }
  /// As many as settle it.
  void settle() { read_group(8); }

  Script mapped_;
  Script scatter_;
  double clock_ = 0;  // of the thread
  bool cached_ = true;
  int asked_ = 0;
  std::int64_t first_row_ = 0;
  std::stop_source stop_;
  std::shared_ptr<SourceTrials> trials_;
  std::unique_ptr<TrialSource> source_;
};

TEST_F(TrialSourceTest, EachGroupIsReadOnceWhileSourcesAreTried) {
  make();
  settle();
  EXPECT_EQ(mapped_.reads, (std::vector<std::int64_t>{0, 4, 16, 20}));
  EXPECT_EQ(scatter_.reads, (std::vector<std::int64_t>{8, 12, 24, 28}));
}

TEST_F(TrialSourceTest, TheFasterSourceWins) {
  scatter_.seconds = 0.5;
  make();
  EXPECT_EQ(trials_->kind(), SourceKind::mapped);
  EXPECT_NE(trials_->describe().find("to be tried: mapped, mapped with ordinary stores, scatter"),
            std::string::npos)
      << trials_->describe();
  settle();
  EXPECT_EQ(trials_->kind(), SourceKind::scatter);
  EXPECT_NE(trials_->describe().find("in use: scatter"), std::string::npos);
  mapped_.reads.clear();
  read_group(3);
  EXPECT_TRUE(mapped_.reads.empty());
}

TEST_F(TrialSourceTest, TheFasterStoresWin) {
  mapped_.cached_seconds = 0.5;
  make();
  settle();
  EXPECT_EQ(trials_->kind(), SourceKind::mapped);
  EXPECT_NE(trials_->describe().find("in use: mapped with ordinary stores"), std::string::npos)
      << trials_->describe();
}

TEST_F(TrialSourceTest, WhatIsPaidOnceDoesNotCount) {
  mapped_.once_seconds = 0.9;
  scatter_.seconds = scatter_.cached_seconds = 1.3;
  make();
  settle();
  EXPECT_EQ(trials_->kind(), SourceKind::mapped);
}

TEST_F(TrialSourceTest, TimeThatOtherThreadsHaveDoesNotCount) {
  mapped_.idle_seconds = 2.0;
  scatter_.seconds = scatter_.cached_seconds = 1.5;
  make();
  settle();
  EXPECT_EQ(trials_->kind(), SourceKind::mapped);
}

TEST_F(TrialSourceTest, WhatWaitsForTheDiskSaysNothingOfCopying) {
  mapped_.seconds = mapped_.cached_seconds = 2.0;
  scatter_.read_seconds = 7.0;  // between two ends that are in the page cache
  mapped_.once_seconds = 9.0;   // the same where it is mapped in
  make();
  read_group(40);
  EXPECT_EQ(trials_->describe().find("in use"), std::string::npos) << trials_->describe();
  scatter_.read_seconds = mapped_.once_seconds = 0.0;
  settle();
  EXPECT_EQ(trials_->kind(), SourceKind::scatter) << trials_->describe();
}

TEST_F(TrialSourceTest, TheFirstSourceReadsWhatTheDiskBrings) {
  scatter_.seconds = 0.5;
  cached_ = false;
  make();
  read_group(20);
  EXPECT_TRUE(scatter_.reads.empty());
  EXPECT_NE(trials_->describe().find("to be tried"), std::string::npos) << trials_->describe();
  cached_ = true;
  settle();
  EXPECT_EQ(trials_->kind(), SourceKind::scatter);
  // Now it matters where they come from.
  mapped_.reads.clear();
  read_group(2);
  EXPECT_TRUE(mapped_.reads.empty());
  cached_ = false;
  read_group(2);
  EXPECT_EQ(mapped_.reads.size(), 2U);
}

TEST_F(TrialSourceTest, AnotherReadsWhatTheDiskBringsIfTheFirstSourceFails) {
  mapped_.error = Error(ErrorCode::io_failed, "mmap refused");
  cached_ = false;
  make();
  read_group(1);
  mapped_.reads.clear();
  read_group(2);
  EXPECT_TRUE(mapped_.reads.empty());
  (void)source_->prefetch({.first_row = 0, .num_rows = 4}, {0, 3});
  EXPECT_EQ(scatter_.prefetched.size(), 1U);
}

TEST_F(TrialSourceTest, WhatComesWhileTheDiskIsReadSaysNothingOfCopying) {
  scatter_.seconds = 0.5;
  make();
  cached_ = false;
  (void)source_->prefetch({.first_row = 0, .num_rows = 4}, {0, 3});
  cached_ = true;  // it has come
  read_group(20);
  EXPECT_TRUE(scatter_.reads.empty());
  EXPECT_NE(trials_->describe().find("to be tried"), std::string::npos) << trials_->describe();
}

TEST_F(TrialSourceTest, AsMuchLaterAsRowsArePrefetchedAheadTheyHaveCome) {
  make(std::int64_t{16} << 20);
  cached_ = false;
  (void)source_->prefetch({.first_row = 0, .num_rows = 4}, {0, 3});
  cached_ = true;
  asked_ = 0;
  read_group(2);
  EXPECT_EQ(asked_, 0);
  read_group(1);
  EXPECT_EQ(asked_, 1);
}

TEST_F(TrialSourceTest, NobodyAsksWhatIsCachedOnceItDoesNotMatter) {
  make();
  settle();
  asked_ = 0;
  read_group(2);
  EXPECT_EQ(asked_, 0);
}

TEST_F(TrialSourceTest, ASourceThatFailsWhereAnotherDoesNotIsDropped) {
  mapped_.error = Error(ErrorCode::io_failed, "mmap refused");
  make();
  read_group(1);
  EXPECT_EQ(trials_->kind(), SourceKind::scatter);
  mapped_.reads.clear();
  settle();
  EXPECT_TRUE(mapped_.reads.empty());
  EXPECT_NE(trials_->describe().find("mapped (failed)"), std::string::npos) << trials_->describe();
}

TEST_F(TrialSourceTest, WhatNoSourceCanReadIsAnErrorAndNobodyIsDropped) {
  mapped_.error = Error(ErrorCode::io_failed, "the first one");
  scatter_.error = Error(ErrorCode::corrupt_data, "the second one");
  make();
  test::expect_error(ErrorCode::io_failed, {"the first one"}, [this] { read_group(1); });
  mapped_.error.reset();
  scatter_.error.reset();
  settle();
  EXPECT_EQ(trials_->describe().find("failed"), std::string::npos) << trials_->describe();
}

TEST_F(TrialSourceTest, AStoppedGroupReadIsNoFailureAndNoMeasure) {
  make();
  stop_.request_stop();
  test::expect_error(ErrorCode::cancelled, {}, [this] { read_group(1); });
  stop_ = std::stop_source();
  settle();
  EXPECT_EQ(trials_->describe().find("failed"), std::string::npos) << trials_->describe();
  EXPECT_NE(trials_->describe().find("in use: mapped"), std::string::npos) << trials_->describe();
}

TEST_F(TrialSourceTest, FilesShareWhatIsFoundOut) {
  scatter_.seconds = 0.5;
  make();
  settle();
  Script mapped;
  Script scatter;
  std::vector<std::unique_ptr<ChunkSource>> sources;
  sources.push_back(std::make_unique<FakeSource>(mapped, clock_));
  sources.push_back(std::make_unique<FakeSource>(scatter, clock_));
  source_ = std::make_unique<TrialSource>(std::move(sources), trials_, 10,
                                          [](const RowRange&) { return true; });
  read_group(2);
  EXPECT_TRUE(mapped.reads.empty());
  EXPECT_EQ(scatter.reads.size(), 2U);
}

TEST_F(TrialSourceTest, ScratchMemoryIsSharedAndAllElseAddsUp) {
  mapped_.own_bytes = 100;
  mapped_.scratch_bytes = 1;
  scatter_.own_bytes = 20;
  scatter_.scratch_bytes = 7;
  make();
  EXPECT_EQ(source_->memory_bytes(3), 120 + 3 * 7);
}

TEST_F(TrialSourceTest, PrefetchesOnceAndForgetsEverywhere) {
  make();
  (void)source_->prefetch({.first_row = 8, .num_rows = 4}, {8, 11});
  EXPECT_EQ(mapped_.prefetched.size() + scatter_.prefetched.size(), 1U);
}

}  // namespace
}  // namespace chunkio::sources
