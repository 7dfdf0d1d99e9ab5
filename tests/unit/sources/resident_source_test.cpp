#include "sources/resident_source.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <thread>

#include <gtest/gtest.h>

#include <chunkio/error.hpp>

#include "support/pixels.hpp"
#include "support/placed_rows.hpp"
#include "support/scratch.hpp"

namespace chunkio::sources {
namespace {

constexpr std::int64_t kRowBytes = 100;

/// Counts how often each row was read, and fails when told to.
class CountingSource final : public ChunkSource {
 public:
  struct Log {
    std::mutex mutex;
    std::map<std::int64_t, int> rows;
    std::atomic<int> failures{0};
    std::int64_t mismatch = -1;  ///< A row that does not match its digest.
    std::atomic<int> prefetches{0};
    std::chrono::milliseconds delay{0};
    std::atomic<bool> placing{false};
    RowRange wanted;  // of the last prefetch
  };
  explicit CountingSource(std::shared_ptr<Log> log) : log_(std::move(log)) {}

  ReadCost place(const RowGroup& group, std::span<const RowTarget> rows,
                 std::stop_token /*stop*/) const override {
    log_->placing = true;
    std::this_thread::sleep_for(log_->delay);
    if (log_->failures > 0) {
      --log_->failures;
      throw Error(ErrorCode::io_failed, "told to fail");
    }
    for (const RowTarget& row : rows) {
      const auto bytes = test::image(group.first_row + row.row, kRowBytes);
      std::memcpy(row.target, bytes.data(), bytes.size());
      const std::lock_guard lock(log_->mutex);
      ++log_->rows[group.first_row + row.row];
    }
    const std::int64_t damaged = log_->mismatch;
    if (group.first_row <= damaged && damaged < group.first_row + group.num_rows) {
      throw DamagedRows({{damaged, damaged + 1}}, "told to differ");
    }
    return {.bytes_read = static_cast<std::int64_t>(rows.size()) * kRowBytes};
  }
  [[nodiscard]] std::unique_ptr<const ByteSource> prefetch(
      const RowGroup& /*group*/, const RowRange& wanted) const noexcept override {
    ++log_->prefetches;
    log_->wanted = wanted;
    return nullptr;
  }
  [[nodiscard]] std::int64_t memory_bytes(std::int64_t threads) const noexcept override {
    return threads;
  }

 private:
  std::shared_ptr<Log> log_;
};

class ResidentSourceTest : public testing::Test {
 protected:
  void make(const RowGroups& groups) {
    groups_.emplace(groups);
    source_ =
        std::make_unique<ResidentSource>(groups, kRowBytes, std::make_unique<CountingSource>(log_));
  }
  [[nodiscard]] RowGroup group(std::int64_t number) const {
    const RowRange rows = groups_->extent(number);
    return {.first_row = rows.begin, .num_rows = rows.end - rows.begin};
  }
  /// Places some samples of a group and checks them. \returns bytes read.
  std::int64_t read_group(std::int64_t number, std::mt19937_64& random) const {
    std::vector<std::uint32_t> offsets;
    groups_->offsets(number, offsets);
    std::erase_if(offsets, [&](std::uint32_t) { return random() % 2 == 0; });
    return test::place_rows(*source_, group(number), offsets, kRowBytes,
                            [](std::int64_t row) { return test::image(row, kRowBytes); })
        .bytes_read;
  }

  std::shared_ptr<CountingSource::Log> log_ = std::make_shared<CountingSource::Log>();
  std::optional<RowGroups> groups_;
  std::unique_ptr<ResidentSource> source_;
};

TEST_F(ResidentSourceTest, EachRowIsReadOnceHoweverManyThreadsAskForIt) {
  make(RowGroups(7, 100));
  const std::uint64_t seed = test::test_seed();
  std::atomic<std::int64_t> bytes{0};
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        std::mt19937_64 random(seed + t);
        for (int i = 0; i < 200; ++i) {
          bytes += read_group(static_cast<std::int64_t>(random() % 15), random);
        }
      });
    }
  }
  for (const auto& [row, count] : log_->rows) EXPECT_EQ(count, 1) << "row " << row;
  EXPECT_EQ(log_->rows.size(), 100U);
  EXPECT_EQ(bytes, 100 * kRowBytes);
}

TEST_F(ResidentSourceTest, OnlySelectedRowsAreReadAndKept) {
  make(RowGroups(7, 100, RowSelection({{3, 5}, {13, 30}, {70, 71}, {98, 100}})));
  std::mt19937_64 random(test::test_seed());
  for (int round = 0; round < 20; ++round) {
    for (std::int64_t g = 0; g < groups_->num_groups(); ++g) read_group(g, random);
  }
  EXPECT_EQ(log_->rows.size(), 22U);
  EXPECT_TRUE(log_->rows.contains(3) && log_->rows.contains(99) && !log_->rows.contains(5));
  for (const auto& [row, count] : log_->rows) EXPECT_EQ(count, 1) << "row " << row;
  EXPECT_LT(source_->memory_bytes(1), 64 << 10);
}

TEST_F(ResidentSourceTest, RowsThatMatchedAreKeptAndTheOthersNamedAtEveryRead) {
  make(RowGroups(10, 20));
  log_->mismatch = 13;
  std::mt19937_64 random(1);
  for (int round = 0; round < 3; ++round) {
    std::vector<std::byte> memory(2 * kRowBytes);
    const std::array<RowTarget, 2> targets{RowTarget{2, memory.data()},
                                           RowTarget{4, memory.data() + kRowBytes}};
    try {
      (void)source_->place(group(1), targets, {});
      FAIL() << "nothing was noticed";
    } catch (const DamagedRows& error) {
      EXPECT_EQ(error.rows(), (std::vector<RowRange>{{13, 14}}));
    }
    for (std::size_t i = 0; i < targets.size(); ++i) {
      const auto expected = test::image(10 + targets[i].row, kRowBytes);
      EXPECT_EQ(std::memcmp(targets[i].target, expected.data(), kRowBytes), 0);
    }
    EXPECT_EQ(read_group(0, random), round == 0 ? 10 * kRowBytes : 0);
  }
  for (const auto& [row, count] : log_->rows) EXPECT_EQ(count, 1) << "row " << row;
}

TEST_F(ResidentSourceTest, AFailedReadIsTriedAgain) {
  make(RowGroups(10, 20));
  std::mt19937_64 random(1);
  log_->failures = 2;
  EXPECT_THROW(read_group(0, random), Error);
  EXPECT_THROW(read_group(0, random), Error);
  EXPECT_EQ(read_group(0, random), 10 * kRowBytes);
  EXPECT_EQ(read_group(0, random), 0);
}

TEST_F(ResidentSourceTest, PrefetchesOnlyWhatIsNotThere) {
  make(RowGroups(10, 20));
  std::mt19937_64 random(1);
  (void)source_->prefetch(group(0), {2, 3});
  EXPECT_EQ(log_->prefetches, 1);
  EXPECT_EQ(log_->wanted, (RowRange{0, 10})) << "the first read brings all samples";
  read_group(0, random);
  (void)source_->prefetch(group(0), {2, 3});
  (void)source_->prefetch(group(1), {12, 13});
  EXPECT_EQ(log_->prefetches, 2);
}

TEST_F(ResidentSourceTest, PrefetchesFromTheFirstToTheLastSelectedRow) {
  make(RowGroups(10, 40, RowSelection({{3, 5}, {7, 8}, {32, 33}})));
  (void)source_->prefetch(group(0), {4, 5});
  EXPECT_EQ(log_->wanted, (RowRange{3, 8}));
  (void)source_->prefetch(group(1), {32, 33});
  EXPECT_EQ(log_->wanted, (RowRange{32, 33}));
}

TEST_F(ResidentSourceTest, WaitingForAnotherThreadCountsAsReading) {
  make(RowGroups(10, 20));
  log_->delay = std::chrono::milliseconds(100);
  std::array<double, 2> read_seconds{};
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < 2; ++t) {
      threads.emplace_back([&, t] {
        std::vector<std::byte> memory(kRowBytes);
        const RowTarget row{.row = 0, .target = memory.data()};
        read_seconds[t] =
            source_->place(group(0), std::span(&row, 1), std::stop_token()).read_seconds;
      });
      while (t == 0 && !log_->placing) std::this_thread::yield();
    }
  }
  EXPECT_GT(read_seconds[1], 0.01) << "the second thread waited for the first";
}

}  // namespace
}  // namespace chunkio::sources
