#include "plan/group_samples.hpp"

#include <cstdint>

#include <gtest/gtest.h>

#include <chunkio/chunk_layout.hpp>

namespace chunkio::plan {
namespace {

/// 100,000 images of 32x32x3, in chunks of `chunk_rows`; 0: not chunked.
DatasetInfo images(std::int64_t chunk_rows) {
  DatasetInfo info;
  info.num_samples = 100'000;
  info.height = info.width = 32;
  info.channels = 3;
  info.stored.shape = {info.num_samples, 32, 32, 3};
  info.stored.chunked = chunk_rows > 0;
  if (info.stored.chunked) info.stored.chunk_shape = {chunk_rows, 32, 32, 3};
  return info;
}

constexpr std::int64_t kRun = kDefaultChunkBytes / (32 * 32 * 3);

TEST(GroupSamples, AreThoseOfAChunk) {
  EXPECT_EQ(group_samples(images(7), kDefaultWindowBytes), 7);
  EXPECT_EQ(group_samples(images(200'000), std::int64_t{1} << 40), 100'000);
}

TEST(GroupSamples, AreARunWhereThereAreNoChunksOrTooLargeOnes) {
  EXPECT_EQ(group_samples(images(0), kDefaultWindowBytes), kRun);
  EXPECT_EQ(group_samples(images(100'000), kDefaultWindowBytes), kRun);
}

TEST(GroupSamples, FilteredChunksAreNotCut) {
  DatasetInfo info = images(100'000);
  info.stored.filters.emplace_back();
  EXPECT_EQ(group_samples(info, kDefaultWindowBytes), 100'000);
}

TEST(GroupSamples, ARunIsAtMostHalfAWindowAndAtLeastOneSample) {
  EXPECT_EQ(group_samples(images(0), 10 * 32 * 32 * 3), 5);
  EXPECT_EQ(group_samples(images(0), 1), 1);
}

}  // namespace
}  // namespace chunkio::plan
