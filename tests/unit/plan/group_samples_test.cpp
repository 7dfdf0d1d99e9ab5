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

TEST(GroupSamples, AreCutByTheMeanOfTheRows) {
  EXPECT_EQ(mean_row_bytes(1000, 10), 100);
  EXPECT_EQ(mean_row_bytes(1009, 10), 100);
  EXPECT_EQ(mean_row_bytes(3, 10), 1) << "rows may be empty";
  EXPECT_EQ(mean_row_bytes(images(7)), 32 * 32 * 3);
  DatasetInfo vectors;
  vectors.num_samples = 100'000;
  vectors.leading = {"x", DType::float32, Shape{784}};
  EXPECT_EQ(mean_row_bytes(vectors), 784 * 4);
  EXPECT_EQ(group_samples(vectors, kDefaultWindowBytes), kDefaultChunkBytes / (784 * 4));
}

TEST(GroupSamples, ARunIsAtMostHalfAWindowAndAtLeastOneSample) {
  EXPECT_EQ(group_samples(images(0), 10 * 32 * 32 * 3), 5);
  EXPECT_EQ(group_samples(images(0), 1), 1);
}

}  // namespace
}  // namespace chunkio::plan
