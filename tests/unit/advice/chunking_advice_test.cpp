#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chunkio/error.hpp>
#include <chunkio/inspection.hpp>

#include "support/errors.hpp"

namespace {

using chunkio::chunking_advice;
using chunkio::DType;
using chunkio::Shape;
using chunkio::StoredLayout;
using chunkio::test::refusal;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

StoredLayout chunked(Shape shape, Shape chunk_shape, std::vector<std::string> filters = {}) {
  return {shape, DType::uint8, true, chunk_shape, std::move(filters)};
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
                (void)chunking_advice(chunked({10, 8, 8, 3}, {10, 8, 8}));
              }),
              HasSubstr("[10,8,8]"));
  EXPECT_THAT(refusal([] {
                (void)chunking_advice(chunked({10, 8, 8, 3}, {10, 0, 8, 3}));
              }),
              HasSubstr("[10,0,8,3]"));
}

}  // namespace
