#include "io/direct_ahead.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "support/noise_file.hpp"
#include "support/scratch.hpp"

namespace chunkio::io {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

class DirectAheadTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!reader_->direct()) GTEST_SKIP() << "this file system refuses O_DIRECT";
  }

  [[nodiscard]] bool are_bytes_of(const ByteRange& range, std::span<const std::byte> bytes) const {
    return std::ssize(bytes) == range.end - range.begin &&
           std::equal(bytes.begin(), bytes.end(),
                      reinterpret_cast<const std::byte*>(file_.bytes.data()) + range.begin);
  }

  /// Reads prefetched ranges until one group read finds all its blocks, which takes a moment.
  /// \returns false if none ever does.
  [[nodiscard]] bool will_be_read(DirectAhead& ahead, const ByteRange& range) {
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    for (std::int64_t row = 1'000'000; std::chrono::steady_clock::now() < patience; ++row) {
      const DirectAhead::Rows rows{&source_, {row, row + 1}};
      ahead.prefetch(rows, reader_, {{range}});
      std::this_thread::sleep_for(std::chrono::milliseconds(row - 1'000'000));
      DirectAhead::GroupBlocks blocks = ahead.blocks_of(rows);
      std::int64_t begin = range.begin;
      while (begin < range.end) {
        const ByteRange piece{begin, std::min((begin / kMiB + 1) * kMiB, range.end)};
        ReadCost cost;
        const auto bytes = blocks.take(piece, cost);
        if (bytes.empty()) break;
        EXPECT_TRUE(are_bytes_of(piece, bytes));
        EXPECT_EQ(cost.bytes_read, piece.end - piece.begin);
        begin = piece.end;
      }
      if (begin >= range.end) return true;
    }
    return false;
  }

  /// Prefetches are told apart by it alone.
  class NoSource final : public ChunkSource {
   public:
    ReadCost place(const RowGroup& /*group*/, std::span<const RowTarget> /*rows*/,
                   std::stop_token /*stop*/) const override {
      return {};
    }
    [[nodiscard]] std::int64_t memory_bytes(std::int64_t /*threads*/) const noexcept override {
      return 0;
    }
  };

  test::ScratchFolder folder_;
  test::NoiseFile file_{folder_.file("file"), 9 * kMiB + 5};
  std::shared_ptr<const RangeReader> reader_ =
      std::make_shared<const RangeReader>(file_.impl, true);
  NoSource source_;
  NoSource other_source_;
};

TEST_F(DirectAheadTest, BringsWhatIsPrefetchedToTheEndOfTheFile) {
  DirectAhead ahead(24 * kMiB);
  EXPECT_TRUE(will_be_read(ahead, {5, 9 * kMiB + 5}));
  EXPECT_TRUE(will_be_read(ahead, {3 * kMiB + 17, 3 * kMiB + 19}));
}

TEST_F(DirectAheadTest, TakesTheMemoryThatItSaysAndNoneIfThatIsTooLittle) {
  EXPECT_EQ(DirectAhead(0).memory_bytes(), 0);
  EXPECT_EQ(DirectAhead(3 * kMiB).memory_bytes(), 0);
  for (const std::int64_t memory : {6 * kMiB, 9 * kMiB + 77, 24 * kMiB}) {
    const std::int64_t taken = DirectAhead(memory).memory_bytes();
    EXPECT_LE(taken, memory);
    EXPECT_GT(taken, memory / 2);
  }
  DirectAhead none(0);
  none.prefetch({&source_, {0, 4}}, reader_, {{ByteRange{0, kMiB}}});
  EXPECT_TRUE(none.blocks_of({&source_, {0, 4}}).empty());
}

/// With memory for a few blocks: what is kept for nothing would soon leave none.
TEST_F(DirectAheadTest, NothingIsKeptOfWhatNobodyTakes) {
  const auto range = [](std::int64_t i) { return ByteRange{i % 8 * kMiB, (i % 8 + 1) * kMiB}; };
  DirectAhead ahead(6 * kMiB);
  for (std::int64_t i = 0; i < 20; ++i) {
    const DirectAhead::Rows rows{&source_, {i, i + 1}};
    switch (i % 4) {
      case 0:  // a group read that comes first
        EXPECT_TRUE(ahead.blocks_of(rows).empty());
        ahead.prefetch(rows, reader_, {{range(i)}});
        break;
      case 1:  // one that reads nothing
        ahead.prefetch(rows, reader_, {{range(i)}});
        EXPECT_FALSE(ahead.blocks_of(rows).empty());
        break;
      case 2:  // none
        ahead.prefetch(rows, reader_, {{range(i)}});
        ahead.cancel(&source_);
        break;
      default: {  // two of the same rows
        ahead.prefetch(rows, reader_, {{range(i)}});
        ahead.prefetch(rows, reader_, {{range(i)}});
        const auto first = ahead.blocks_of(rows);
        const auto second = ahead.blocks_of(rows);
        EXPECT_FALSE(first.empty());
        EXPECT_TRUE(second.empty());
      }
    }
  }
  EXPECT_TRUE(will_be_read(ahead, {0, 4 * kMiB})) << "all four blocks at once";
}

TEST_F(DirectAheadTest, OneSourceForgetsWhatItPrefetchedItself) {
  DirectAhead ahead(8 * kMiB);
  ahead.prefetch({&source_, {0, 1}}, reader_, {{ByteRange{0, kMiB}}});
  ahead.prefetch({&other_source_, {0, 1}}, reader_, {{ByteRange{kMiB, 2 * kMiB}}});
  ahead.cancel(&source_);
  EXPECT_TRUE(ahead.blocks_of({&source_, {0, 1}}).empty());
  EXPECT_FALSE(ahead.blocks_of({&other_source_, {0, 1}}).empty());
}

TEST_F(DirectAheadTest, WhatCannotBeReadIsLeftToWhoeverComes) {
  DirectAhead ahead(8 * kMiB);
  const DirectAhead::Rows rows{&source_, {0, 1}};
  const ByteRange beyond{20 * kMiB, 20 * kMiB + 100};
  for (int i = 0; i < 20; ++i) {
    ahead.prefetch(rows, reader_, {{beyond}});
    GroupReader reader(*reader_, ahead.blocks_of(rows));
    const base::HostBuffer scratch(reader_->scratch_bytes(100));
    ReadCost cost;
    EXPECT_THROW((void)reader.read_piece(beyond, scratch.bytes(), cost), Error);
    EXPECT_EQ(cost.bytes_read, 0);
  }
  EXPECT_TRUE(will_be_read(ahead, {0, 4 * kMiB}));
}

/// Some blocks are there, some are not: the bytes are the same.
TEST_F(DirectAheadTest, GroupReadsBringTheSameBytesWhateverIsThere) {
  DirectAhead ahead(6 * kMiB);
  const auto work = [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto below = [&](std::int64_t limit) {
      return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(limit));
    };
    const base::HostBuffer scratch(reader_->scratch_bytes(4 * kMiB));
    for (std::int64_t i = 0; i < 60; ++i) {
      const std::int64_t begin = below(6 * kMiB);
      const ByteRange range{begin, begin + 1 + below(3 * kMiB)};
      const auto row = static_cast<std::int64_t>(seed) * 1000 + i;
      const DirectAhead::Rows rows{&source_, {row, row + 1}};
      ahead.prefetch(rows, reader_, {{range}});
      if (below(2) == 0) std::this_thread::sleep_for(std::chrono::milliseconds(below(4)));
      GroupReader reader(*reader_, ahead.blocks_of(rows));
      ReadCost cost;
      if (below(2) == 0) {
        ASSERT_TRUE(are_bytes_of(range, reader.read(range, scratch.bytes(), cost)));
        continue;
      }
      for (std::int64_t at = range.begin; at < range.end;) {
        const ByteRange piece{at, reader.end_of_piece({at, range.end}, kMiB)};
        ASSERT_TRUE(are_bytes_of(piece, reader.read_piece(piece, scratch.bytes(), cost)));
        at = piece.end + (below(3) == 0 ? below(100'000) : 0);  // a hole
      }
    }
  };
  std::vector<std::jthread> threads;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) threads.emplace_back(work, seed);
}

}  // namespace
}  // namespace chunkio::io
