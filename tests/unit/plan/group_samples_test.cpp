#include "plan/group_samples.hpp"

#include <cstdint>

#include <gtest/gtest.h>

#include <chunkio/chunk_layout.hpp>

#include "support/golden_vectors.hpp"

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

TEST(GroupSamples, MatchTheReference) {
  int merged = 0;
  for (const auto& entry : test::golden_vectors("groups.json")) {
    SCOPED_TRACE(entry.dump());
    DatasetInfo info;
    info.num_samples = entry["rows"];
    const std::int64_t row_bytes = entry["row_bytes"];
    const std::int64_t chunk_rows = entry["chunk_rows"];
    info.height = 1;
    info.width = row_bytes;
    info.channels = 1;
    info.stored.shape = {info.num_samples, 1, row_bytes, 1};
    info.stored.chunked = chunk_rows > 0;
    if (info.stored.chunked) info.stored.chunk_shape = {chunk_rows, 1, row_bytes, 1};
    if (entry["filtered"]) info.stored.filters.emplace_back("deflate");
    const Grouping found = grouping(info, entry["window_bytes"], entry["newest"]);
    EXPECT_EQ(found.samples, entry["k"]);
    EXPECT_EQ(found.order_version, entry["version"]);
    if (found.order_version == 2) ++merged;
    if (found.order_version != 2 || entry["newest"] == 1) continue;
    // What Loader::resume() asks for: the smallest window that has the same groups.
    const std::int64_t window_bytes =
        entry["window_groups"].get<std::int64_t>() * found.samples * row_bytes;
    const Grouping resumed = grouping(info, window_bytes, 2);
    EXPECT_EQ(resumed.samples, found.samples);
    EXPECT_EQ(window_bytes / (resumed.samples * row_bytes), entry["window_groups"]);
  }
  EXPECT_GT(merged, 20);
}

TEST(GroupSamples, AreThoseOfAChunk) {
  EXPECT_EQ(group_samples(images(700), kDefaultWindowBytes), 700);
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
