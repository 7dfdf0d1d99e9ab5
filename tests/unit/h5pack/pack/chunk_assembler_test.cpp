#include "h5pack/pack/chunk_assembler.hpp"

#include <cstring>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include <chunkio/error.hpp>

#include "support/errors.hpp"
#include "support/scratch.hpp"

namespace h5pack {
namespace {

using chunkio::ErrorCode;
using chunkio::test::expect_error;

constexpr std::int64_t kSampleBytes = 5;
constexpr std::int64_t kChunk = 4;

/// Images are good or bad by their place; the bytes of a good one are its place.
class ChunkAssembly : public ::testing::Test {
 protected:
  explicit ChunkAssembly(std::vector<bool> good = {}) : good_(std::move(good)) {}

  DecodedBlock block(const PendingRange& range, std::int64_t first, std::int64_t end) {
    DecodedBlock block{.range = &range, .first_place = first, .pixels = pool_.take()};
    for (std::int64_t place = first; place < end; ++place) {
      if (good_[static_cast<std::size_t>(place)]) {
        block.outcomes.emplace_back(ImageSize{place + 1, 1});
        std::memset(block.pixels.get() + (place - first) * kSampleBytes, static_cast<int>(place),
                    kSampleBytes);
      } else {
        block.outcomes.emplace_back(SkippedImage{.place = place});
      }
    }
    return block;
  }

  /// All chunks of one range.
  std::vector<PackedChunk> assemble(ChunkAssembler& assembler, const PendingRange& range) {
    std::vector<PackedChunk> chunks;
    for (std::int64_t first = range.first_place; first < range.end_place; first += kChunk) {
      auto full = assembler.add(block(range, first, std::min(first + kChunk, range.end_place)));
      if (full) chunks.push_back(std::move(*full));
    }
    return chunks;
  }

  std::vector<bool> good_;
  BufferPool pool_{kChunk * kSampleBytes};
  ChunkAssembler assembler_{kChunk, kSampleBytes, PixelStatistics(1, chunkio::Layout::nhwc), pool_};
};

/// The chunk's rows as places.
std::vector<std::int64_t> places(const PackedChunk& chunk) {
  std::vector<std::int64_t> rows;
  for (std::int64_t row = 0; row < chunk.num_rows; ++row) {
    const std::uint8_t* sample = chunk.pixels.get() + row * kSampleBytes;
    for (std::int64_t i = 1; i < kSampleBytes; ++i) EXPECT_EQ(sample[i], sample[0]);
    rows.push_back(sample[0]);
  }
  return rows;
}

TEST_F(ChunkAssembly, WithoutSkipsABlockIsAChunkAndNothingIsCopied) {
  good_.assign(8, true);
  const PendingRange range{.end_place = 8};
  DecodedBlock first = block(range, 0, 4);
  const std::uint8_t* const pixels = first.pixels.get();
  const auto chunk = assembler_.add(std::move(first));
  ASSERT_TRUE(chunk);
  EXPECT_EQ(chunk->pixels.get(), pixels);
  EXPECT_EQ(places(*chunk), (std::vector<std::int64_t>{0, 1, 2, 3}));
}

TEST_F(ChunkAssembly, AnyPatternOfSkipsLeavesNoHole) {
  std::mt19937_64 random(chunkio::test::test_seed());
  for (int round = 0; round < 300; ++round) {
    const auto count = static_cast<std::int64_t>(random() % 60);
    const std::uint64_t share = random() % 5;  // 0: none is good, 4: all are.
    good_.clear();
    for (std::int64_t i = 0; i < count; ++i) good_.push_back(random() % 4 < share);
    const PendingRange range{.end_place = count};
    ChunkAssembler assembler(kChunk, kSampleBytes, PixelStatistics(1, chunkio::Layout::nhwc),
                             pool_);
    std::vector<PackedChunk> chunks = assemble(assembler, range);
    chunks.push_back(assembler.finish(count));
    std::vector<std::int64_t> rows;
    std::vector<std::int64_t> skipped;
    std::int64_t sizes = 0;
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      EXPECT_EQ(chunks[i].chunk, static_cast<std::int64_t>(i));
      if (i + 1 < chunks.size()) {
        EXPECT_EQ(chunks[i].num_rows, kChunk);
      }
      EXPECT_EQ(chunks[i].record.first_place, i == 0 ? 0 : chunks[i - 1].record.end_place);
      for (const std::int64_t place : places(chunks[i])) {
        EXPECT_GE(place, chunks[i].record.first_place);
        EXPECT_LT(place, chunks[i].record.end_place);
        rows.push_back(place);
      }
      for (const SkippedImage& image : chunks[i].record.skipped) {
        EXPECT_GE(image.place, chunks[i].record.first_place);
        EXPECT_LT(image.place, chunks[i].record.end_place);
        skipped.push_back(image.place);
      }
      for (const auto& [size, times] : chunks[i].record.sizes.counts()) sizes += times;
    }
    EXPECT_EQ(chunks.back().record.end_place, count);
    std::vector<std::int64_t> good;
    std::vector<std::int64_t> bad;
    for (std::int64_t i = 0; i < count; ++i)
      (good_[static_cast<std::size_t>(i)] ? good : bad).push_back(i);
    EXPECT_EQ(rows, good);
    EXPECT_EQ(skipped, bad);
    EXPECT_EQ(sizes, static_cast<std::int64_t>(good.size()));
  }
}

TEST_F(ChunkAssembly, AGapBetweenChunksIsFilledExactly) {
  // Places 0..11 gave chunks 0 and 1 before; of them only chunk 0 (places 0..4) is left.
  good_ = {true, true, false, true,  true, /*gap*/ false,
           true, true, true,  false, true, /*next*/ true};
  const PendingRange gap{.first_chunk = 1, .end_chunk = 2, .first_place = 5, .end_place = 11};
  const auto chunks = assemble(assembler_, gap);
  ASSERT_EQ(chunks.size(), 1U);
  EXPECT_EQ(chunks[0].chunk, 1);
  EXPECT_EQ(places(chunks[0]), (std::vector<std::int64_t>{6, 7, 8, 10}));
  EXPECT_EQ(chunks[0].record.end_place, 11);
}

TEST_F(ChunkAssembly, AGapThatGivesAnotherNumberOfImagesIsRefused) {
  const PendingRange gap{.first_chunk = 1, .end_chunk = 2, .first_place = 5, .end_place = 11};
  for (const int bad : {1, 3}) {  // 2 were bad before
    good_.assign(11, true);
    for (int i = 0; i < bad; ++i) good_[static_cast<std::size_t>(6 + i)] = false;
    ChunkAssembler assembler(kChunk, kSampleBytes, PixelStatistics(1, chunkio::Layout::nhwc),
                             pool_);
    expect_error(ErrorCode::corrupt_data, {"--force"}, [&] { (void)assemble(assembler, gap); });
  }
}

TEST_F(ChunkAssembly, AGapWhoseLastImageIsSkippedNowIsRefused) {
  // As many are good as before, when it was place 6 that was bad: place 10 would be in no chunk.
  good_ = {true, true, true, true, true, /*gap*/ false, true, true, true, true, false};
  const PendingRange gap{.first_chunk = 1, .end_chunk = 2, .first_place = 5, .end_place = 11};
  expect_error(ErrorCode::corrupt_data, {"--force"}, [&] { (void)assemble(assembler_, gap); });
}

}  // namespace
}  // namespace h5pack
