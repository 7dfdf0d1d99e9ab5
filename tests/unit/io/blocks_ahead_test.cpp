#include "io/blocks_ahead.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <latch>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/chunk_source.hpp"
#include "base/host_memory.hpp"
#include "io/direct_file.hpp"
#include "io/range_reader.hpp"
#include "support/byte_sources.hpp"
#include "support/errors.hpp"
#include "support/noise_file.hpp"
#include "support/scratch.hpp"

namespace chunkio::io {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

class BlocksAheadTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!open_direct(file_.file)) GTEST_SKIP() << "this file system refuses O_DIRECT";
    source_ = std::make_shared<const test::CountingSource>(direct_if_possible(file_.file));
  }

  [[nodiscard]] bool holds(const ByteSource& source, const ByteRange& range) const {
    const RangeReader reader(source);
    const base::HostBuffer scratch(reader.scratch_bytes(range.end - range.begin));
    ReadCost cost;
    const auto bytes = reader.read(range, scratch.bytes(), {}, cost);
    return std::ssize(bytes) == range.end - range.begin && cost.bytes_read >= std::ssize(bytes) &&
           std::equal(bytes.begin(), bytes.end(),
                      reinterpret_cast<const std::byte*>(file_.bytes.data()) + range.begin);
  }

  /// Prefetches and reads `range` until all of it was read ahead, which takes a moment.
  /// \returns false if it never is.
  [[nodiscard]] bool will_be_read(BlocksAhead& ahead, const ByteRange& range) {
    const std::int64_t blocks = (range.end - 1) / kMiB - range.begin / kMiB + 1;
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    for (int wait = 0; std::chrono::steady_clock::now() < patience; ++wait) {
      source_->requests = 0;
      const auto prefetched = ahead.prefetch(source_, {{range}});
      if (!prefetched) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(wait));
      EXPECT_TRUE(holds(*prefetched, range));
      // As many as there are blocks: none was read again.
      if (source_->requests == blocks) return true;
    }
    return false;
  }

  test::ScratchFolder folder_;
  test::NoiseFile file_{folder_.file("file"), 9 * kMiB + 5};
  std::shared_ptr<const test::CountingSource> source_;
};

TEST_F(BlocksAheadTest, BringsWhatIsPrefetchedToTheEndOfTheFile) {
  BlocksAhead ahead(24 * kMiB);
  EXPECT_TRUE(will_be_read(ahead, {5, 9 * kMiB + 5}));
  EXPECT_TRUE(will_be_read(ahead, {3 * kMiB + 17, 3 * kMiB + 19}));
}

TEST_F(BlocksAheadTest, TakesTheMemoryThatItSaysAndNoneIfThatIsTooLittle) {
  EXPECT_EQ(BlocksAhead(0).memory_bytes(), 0);
  EXPECT_EQ(BlocksAhead(3 * kMiB).memory_bytes(), 0);
  for (const std::int64_t memory : {6 * kMiB, 9 * kMiB + 77, 24 * kMiB}) {
    const std::int64_t taken = BlocksAhead(memory).memory_bytes();
    EXPECT_LE(taken, memory);
    EXPECT_GT(taken, memory / 2);
  }
  EXPECT_EQ(BlocksAhead(0).prefetch(source_, {{ByteRange{0, kMiB}}}), nullptr);
}

/// With memory for a few blocks: what is kept for nothing would soon leave none.
TEST_F(BlocksAheadTest, NothingIsKeptOfWhatNobodyReads) {
  const auto range = [](std::int64_t i) { return ByteRange{i % 8 * kMiB, (i % 8 + 1) * kMiB}; };
  BlocksAhead ahead(6 * kMiB);
  for (std::int64_t i = 0; i < 20; ++i) {
    const auto prefetched = ahead.prefetch(source_, {{range(i)}});
    ASSERT_TRUE(prefetched);
    // Given up at once, or when it has come, or read.
    if (i % 3 == 1) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (i % 3 == 2) {
      EXPECT_TRUE(holds(*prefetched, range(i)));
    }
  }
  EXPECT_TRUE(will_be_read(ahead, {0, 4 * kMiB})) << "all four blocks at once";
}

TEST_F(BlocksAheadTest, WhatCannotBeReadIsLeftToWhoeverComes) {
  BlocksAhead ahead(8 * kMiB);
  const auto failing =
      std::make_shared<const test::FailingSource>(source_, ByteRange{2 * kMiB, 2 * kMiB + 1});
  for (int i = 0; i < 20; ++i) {
    const auto prefetched = ahead.prefetch(failing, {{ByteRange{0, 4 * kMiB}}});
    ASSERT_TRUE(prefetched);
    EXPECT_TRUE(holds(*prefetched, {0, 2 * kMiB}));
    test::expect_error(ErrorCode::io_failed, {"the disk has failed"}, [&] {
      (void)holds(*prefetched, {2 * kMiB, 2 * kMiB + 100});
    });
    EXPECT_TRUE(holds(*prefetched, {3 * kMiB, 4 * kMiB}));
  }
  EXPECT_TRUE(will_be_read(ahead, {0, 4 * kMiB}));
}

/// Storage whose first answer comes when it is let go.
class HangingSource final : public WrappingSource {
 public:
  using WrappingSource::WrappingSource;
  ReadTime read_at(std::int64_t offset, std::span<std::byte> out,
                   const std::stop_token& stop) const override {
    if (!hung.exchange(true)) let_go.wait();
    return WrappingSource::read_at(offset, out, stop);
  }
  mutable std::atomic<bool> hung = false;
  mutable std::latch let_go{1};
};

TEST_F(BlocksAheadTest, WhoIsImpatientReadsItself) {
  const auto hanging = std::make_shared<const HangingSource>(file_.file);
  BlocksAhead ahead(24 * kMiB, {.impatient = true});
  const ByteRange range{0, kMiB};
  const auto prefetched = ahead.prefetch(hanging, {{range}});
  while (!hanging->hung) std::this_thread::yield();
  EXPECT_TRUE(holds(*prefetched, range)) << "while the first request hangs";
  hanging->let_go.count_down();
}

/// Some blocks are there, some are not: the bytes are the same.
TEST_F(BlocksAheadTest, ReadsBringTheSameBytesWhateverIsThere) {
  BlocksAhead ahead(6 * kMiB);
  const auto work = [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto below = [&](std::int64_t limit) {
      return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(limit));
    };
    for (std::int64_t i = 0; i < 60; ++i) {
      const std::int64_t begin = below(6 * kMiB);
      const ByteRange range{begin, begin + 1 + below(3 * kMiB)};
      const auto prefetched = ahead.prefetch(source_, {{range}});
      if (below(2) == 0) std::this_thread::sleep_for(std::chrono::milliseconds(below(4)));
      if (below(2) == 0) {
        ASSERT_TRUE(holds(*prefetched, range));
        continue;
      }
      for (std::int64_t at = range.begin; at < range.end;) {
        const ByteRange piece{at, std::min(range.end, at + 1 + below(kMiB))};
        ASSERT_TRUE(holds(*prefetched, piece));
        at = piece.end + (below(3) == 0 ? below(100'000) : 0);  // a hole
      }
    }
  };
  std::vector<std::jthread> threads;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) threads.emplace_back(work, seed);
}

}  // namespace
}  // namespace chunkio::io
