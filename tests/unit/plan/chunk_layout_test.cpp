#include <cstdint>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chunkio/chunk_layout.hpp>

#include "support/errors.hpp"

namespace {

using chunkio::choose_chunk_samples;
using chunkio::recommend_cache;
using chunkio::test::refusal;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::int64_t kMiB = 1 << 20;
constexpr std::int64_t kGiB = std::int64_t{1} << 30;

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

}  // namespace
