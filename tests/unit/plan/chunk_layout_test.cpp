#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chunkio/chunk_layout.hpp>
#include <chunkio/error.hpp>

#include "support/errors.hpp"

namespace chunkio {
namespace {

using test::refusal;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::int64_t kMiB = 1 << 20;
constexpr std::int64_t kGiB = std::int64_t{1} << 30;

StoredLayout chunked(Shape shape, Shape chunk_shape, std::vector<std::string> filters = {}) {
  return {shape, DType::uint8, true, chunk_shape, std::move(filters)};
}

TEST(ChooseChunkSamples, FillsTheChunkBytes) {
  EXPECT_EQ(choose_chunk_samples(32 * 32 * 3, 50'000), 1365);
  EXPECT_EQ(choose_chunk_samples(218 * 178 * 3, 202'599), 36);
  EXPECT_EQ(choose_chunk_samples(1000, 50'000, 1999), 1);
  EXPECT_EQ(choose_chunk_samples(1000, 50'000, 2000), 2);
}

TEST(ChooseChunkSamples, HoldsAtLeastOneAndAtMostAll) {
  EXPECT_EQ(choose_chunk_samples(100 * kMiB, 5), 1);
  EXPECT_EQ(choose_chunk_samples(10, 7), 7);
}

TEST(ChooseChunkSamples, StaysBelowFourGiB) {
  EXPECT_EQ(choose_chunk_samples(4 * kGiB - 1, 5), 1);
  EXPECT_THAT(refusal([] { choose_chunk_samples(4 * kGiB, 5); }), HasSubstr("4 GiB"));
  EXPECT_THAT(refusal([] { choose_chunk_samples(kMiB, 1 << 20, 8 * kGiB); }),
              AllOf(HasSubstr("4 GiB"), HasSubstr("8192 samples")));
  EXPECT_THAT(
      refusal([] { choose_chunk_samples(std::numeric_limits<std::int64_t>::max(), 1 << 20); }),
      HasSubstr("resize"));
}

TEST(ChooseChunkSamples, RefusesNothing) {
  EXPECT_THAT(refusal([] { choose_chunk_samples(0, 5); }), HasSubstr("1 byte"));
  EXPECT_THAT(refusal([] { choose_chunk_samples(5, 0); }), HasSubstr("1 sample"));
  EXPECT_THAT(refusal([] { choose_chunk_samples(5, 5, 0); }), HasSubstr("1 byte"));
}

TEST(RecommendCache, SlotsAreThePrimeAboveTheNumberOfChunks) {
  EXPECT_EQ(recommend_cache(0, 0).rdcc_nslots, 521U);
  EXPECT_EQ(recommend_cache(520, kMiB).rdcc_nslots, 521U);
  EXPECT_EQ(recommend_cache(521, kMiB).rdcc_nslots, 523U);
  EXPECT_EQ(recommend_cache(1000, kMiB).rdcc_nslots, 1009U);
  EXPECT_EQ(recommend_cache(32'768, kMiB).rdcc_nslots, 32'771U);
  EXPECT_EQ(recommend_cache(65'535, kMiB).rdcc_nslots, 65'537U);
}

TEST(RecommendCache, SlotsStopAtTwoToTheTwenty) {
  constexpr std::uint64_t kLargestPrime = 1'048'573;
  EXPECT_EQ(recommend_cache(1'048'572, kMiB).rdcc_nslots, kLargestPrime);
  EXPECT_EQ(recommend_cache(1'048'573, kMiB).rdcc_nslots, kLargestPrime);
  EXPECT_EQ(recommend_cache(std::numeric_limits<std::int64_t>::max(), kMiB).rdcc_nslots,
            kLargestPrime);
}

TEST(RecommendCache, BytesAreOneWindowAndAtLeastAChunk) {
  EXPECT_EQ(recommend_cache(100, 4 * kMiB).rdcc_nbytes, std::uint64_t{256} << 20);
  EXPECT_EQ(recommend_cache(100, 4 * kMiB, 64 * kMiB).rdcc_nbytes, std::uint64_t{64} << 20);
  EXPECT_EQ(recommend_cache(100, kGiB).rdcc_nbytes, std::uint64_t{1} << 30);
  EXPECT_EQ(recommend_cache(100, kMiB).rdcc_w0, 1.0);
  EXPECT_THAT(refusal([] { recommend_cache(-1, 1); }), HasSubstr("0 or more"));
}

TEST(ChunkingAdvice, WholeImagesInFourMiBAreFine) {
  EXPECT_THAT(chunking_advice(chunked({50'000, 32, 32, 3}, {1365, 32, 32, 3})), IsEmpty());
  EXPECT_THAT(chunking_advice(chunked({202'599, 218, 178, 3}, {36, 218, 178, 3})), IsEmpty());
}

TEST(ChunkingAdvice, SmallDataInOneChunkIsFine) {
  EXPECT_THAT(chunking_advice(chunked({20, 8, 8, 3}, {20, 8, 8, 3})), IsEmpty());
  EXPECT_THAT(chunking_advice(chunked({20, 8, 8, 3}, {100, 8, 8, 3})), IsEmpty());
}

TEST(ChunkingAdvice, ContiguousIsFineForThisLibraryAlone) {
  EXPECT_THAT(chunking_advice({Shape{50'000, 32, 32, 3}, DType::uint8, false, {}, {}}),
              ElementsAre(AllOf(HasSubstr("contiguous"), HasSubstr("as fast as chunks"),
                                HasSubstr("h5pack repack"))));
}

TEST(ChunkingAdvice, NothingToSayAboutNoData) {
  EXPECT_THAT(chunking_advice({}), IsEmpty());
  EXPECT_THAT(chunking_advice(chunked({0, 8, 8, 3}, {1, 8, 8, 3})), IsEmpty());
}

// One row short of a whole image: two chunks an image, and a file twice the size.
TEST(ChunkingAdvice, ChunksThatCutImagesAreTheFirstThingToSay) {
  const auto advice = chunking_advice(chunked({202'599, 3, 218, 178}, {100, 3, 217, 178}));
  ASSERT_EQ(advice.size(), 2U);
  EXPECT_THAT(advice[0], AllOf(HasSubstr("2 pieces"), HasSubstr("axis 2: 217 of 218"),
                               HasSubstr("2 chunks"), HasSubstr("113.7 KiB"), HasSubstr("22.1 MiB"),
                               HasSubstr("(199x)"), HasSubstr("1.99x the bytes"),
                               HasSubstr("chunks=(36,3,218,178)"), HasSubstr("h5pack")));
  EXPECT_THAT(advice[1], AllOf(HasSubstr("11.1 MiB"), HasSubstr("1.0 MiB"),
                               HasSubstr("at least 2 reads"), HasSubstr("chunk_shuffled")));
}

TEST(ChunkingAdvice, CountsPiecesOverAllAxes) {
  const auto advice = chunking_advice(chunked({1000, 100, 64, 3}, {10, 30, 64, 1}));
  ASSERT_FALSE(advice.empty());
  EXPECT_THAT(advice[0], AllOf(HasSubstr("12 pieces"), HasSubstr("axis 1: 30 of 100"),
                               HasSubstr("axis 3: 1 of 3"), HasSubstr("12 chunks")));
}

TEST(ChunkingAdvice, FiltersCostDecoding) {
  const auto advice =
      chunking_advice(chunked({50'000, 32, 32, 3}, {300, 32, 32, 3}, {"shuffle", "deflate"}));
  EXPECT_THAT(advice, ElementsAre(AllOf(HasSubstr("shuffle, deflate"), HasSubstr("CPU"),
                                        HasSubstr("300x"), HasSubstr("once an epoch"))));
}

TEST(ChunkingAdvice, FilteredChunksBeyondTheCacheAreReadAgainForEachImage) {
  const auto advice = chunking_advice(chunked({50'000, 32, 32, 3}, {1365, 32, 32, 3}, {"deflate"}));
  ASSERT_EQ(advice.size(), 2U);
  EXPECT_THAT(advice[0], AllOf(HasSubstr("4.0 MiB"), HasSubstr("1.0 MiB"), HasSubstr("(1365x)"),
                               HasSubstr("rdcc_nbytes=268435456")));
}

TEST(ChunkingAdvice, FilteredChunksOfOneImageOnlyCostDecoding) {
  const auto advice = chunking_advice(chunked({1000, 1024, 1024, 3}, {1, 1024, 1024, 3}, {"gzip"}));
  ASSERT_EQ(advice.size(), 1U);
  EXPECT_THAT(advice[0], AllOf(HasSubstr("gzip"), Not(HasSubstr("random order"))));
}

TEST(ChunkingAdvice, SmallChunksAreCounted) {
  const auto advice = chunking_advice(chunked({50'000, 32, 32, 3}, {1, 32, 32, 3}));
  EXPECT_THAT(advice, ElementsAre(AllOf(HasSubstr("3.0 KiB"), HasSubstr("50000 chunks"),
                                        HasSubstr("chunks=(1365,32,32,3)"),
                                        HasSubstr("4 MiB by default"))));
}

TEST(ChunkingAdvice, LargeChunksMixLittle) {
  const auto advice = chunking_advice(chunked({500'000, 32, 32, 3}, {40'000, 32, 32, 3}));
  EXPECT_THAT(advice,
              ElementsAre(AllOf(HasSubstr("117.2 MiB"), HasSubstr("40000 images"),
                                HasSubstr("only 2 chunks"), HasSubstr("4 MiB by default"))));
}

TEST(ChunkingAdvice, OneChunkForEverythingLeavesNothingToShuffle) {
  const auto advice = chunking_advice(chunked({50'000, 32, 32, 3}, {50'000, 32, 32, 3}));
  EXPECT_THAT(advice, ElementsAre(AllOf(HasSubstr("All 50000 images"), HasSubstr("one chunk"),
                                        HasSubstr("146.5 MiB"), HasSubstr("h5pack"))));
}

TEST(ChunkingAdvice, ChunksLargerThanTheirContentsWasteSpace) {
  const auto advice = chunking_advice(chunked({1000, 32, 32, 3}, {100, 64, 64, 3}));
  ASSERT_FALSE(advice.empty());
  EXPECT_THAT(advice[0], AllOf(HasSubstr("4x the bytes"), HasSubstr("chunks=(1000,32,32,3)")));
}

TEST(ChunkingAdvice, FloatImagesAreFourTimesTheBytes) {
  const auto advice = chunking_advice({Shape{1000, 32, 32, 3}, DType::float32, false, {}, {}});
  EXPECT_THAT(advice, ElementsAre(AllOf(HasSubstr("float32"), HasSubstr("4x"), HasSubstr("uint8")),
                                  HasSubstr("contiguous")));
  EXPECT_THAT(chunking_advice({Shape{1000, 32, 32, 3}, DType::float64, false, {}, {}}),
              ElementsAre(HasSubstr("8x"), HasSubstr("contiguous")));
}

TEST(ChunkingAdvice, EveryFindingNamesAWayOut) {
  const std::vector<StoredLayout> layouts{
      chunked({1000, 3, 218, 178}, {100, 3, 217, 178}, {"deflate"}),
      chunked({50'000, 32, 32, 3}, {1, 16, 16, 3}, {"lzf"}),
      chunked({50'000, 256, 256, 3}, {5000, 256, 256, 3}, {"deflate"})};
  for (const StoredLayout& layout : layouts) {
    const std::vector<std::string> advice = chunking_advice(layout);
    EXPECT_THAT(advice, Not(IsEmpty()));
    EXPECT_THAT(advice, Each(AllOf(AnyOf(HasSubstr("h5pack"), HasSubstr("rdcc_nbytes")),
                                   Not(HasSubstr("\n")))));
  }
}

TEST(ChunkingAdvice, AbsurdAxesAreSpokenOfNotComputedWith) {
  const std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  EXPECT_THAT(chunking_advice(chunked({huge, huge, huge, 3}, {1, 1, 1, 1})), Not(IsEmpty()));
}

TEST(ChunkingAdvice, RefusesChunksThatDoNotFitTheShape) {
  EXPECT_THAT(refusal([] {
                chunking_advice(chunked({10, 8, 8, 3}, {10, 8, 8}));
              }),
              HasSubstr("[10,8,8]"));
  EXPECT_THAT(refusal([] {
                chunking_advice(chunked({10, 8, 8, 3}, {10, 0, 8, 3}));
              }),
              HasSubstr("[10,0,8,3]"));
}

}  // namespace
}  // namespace chunkio
