#include "plan/cache_simulator.hpp"

#include <cstdint>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/errors.hpp"

namespace chunkio::plan {
namespace {

using Numbers = std::vector<std::int64_t>;

/// 100 samples of 10 bytes, 10 a chunk.
StoredGeometry ten_chunks() {
  return {.shape = {100, 10}, .chunk_shape = {10, 10}, .element_bytes = 1};
}

ChunkCacheSettings room_for(std::uint64_t chunks, double w0 = 0) {
  return {.rdcc_nslots = 521, .rdcc_nbytes = chunks * 100, .rdcc_w0 = w0};
}

/// The chunks that a read of one of their samples finds, asked of copies, so that nothing changes.
Numbers held(const CacheSimulator& cache) {
  Numbers chunks;
  for (std::int64_t chunk = 0; chunk < 10; ++chunk) {
    CacheSimulator copy = cache;
    copy.read(chunk * 10);
    if (copy.counts().hits > cache.counts().hits) chunks.push_back(chunk);
  }
  return chunks;
}

void visit_chunks(CacheSimulator& cache, const Numbers& chunks) {
  for (const std::int64_t chunk : chunks) cache.read(chunk * 10);
}

TEST(CacheSimulator, AChunkIsLoadedOnceWhereItIsKept) {
  CacheSimulator cache(ten_chunks(), room_for(1));
  for (std::int64_t row = 0; row < 100; ++row) cache.read(row);
  const CacheCounts expected{.reads = 100,
                             .visits = 100,
                             .hits = 90,
                             .loads = 10,
                             .evictions = 9,
                             .requests = 10,
                             .file_bytes = 1000,
                             .read_bytes = 1000};
  EXPECT_EQ(cache.counts(), expected);
  EXPECT_DOUBLE_EQ(cache.counts().hit_rate(), 0.9);
  EXPECT_DOUBLE_EQ(cache.counts().read_amplification(), 1);
  EXPECT_EQ(cache.chunks_held(), 1);
  EXPECT_EQ(cache.bytes_held(), 100);
}

TEST(CacheSimulator, NothingReadIsNoRate) {
  const CacheSimulator cache(ten_chunks(), room_for(1));
  EXPECT_EQ(cache.counts().hit_rate(), 0);
  EXPECT_EQ(cache.counts().read_amplification(), 0);
}

TEST(CacheSimulator, ASmallerCacheIsPassedByUnlessChunksAreFiltered) {
  const ChunkCacheSettings small{.rdcc_nslots = 521, .rdcc_nbytes = 99, .rdcc_w0 = 0};
  CacheSimulator unfiltered(ten_chunks(), small);
  for (std::int64_t row = 0; row < 20; ++row) unfiltered.read(row);
  EXPECT_EQ(unfiltered.counts().piece_reads, 20);
  EXPECT_EQ(unfiltered.counts().file_bytes, 200);
  EXPECT_EQ(unfiltered.counts().requests, 20);

  StoredGeometry geometry = ten_chunks();
  geometry.filtered = true;
  CacheSimulator filtered(geometry, small);
  for (std::int64_t row = 0; row < 20; ++row) filtered.read(row);
  EXPECT_EQ(filtered.counts().loads, 20);
  EXPECT_EQ(filtered.counts().file_bytes, 2000);
  EXPECT_DOUBLE_EQ(filtered.counts().read_amplification(), 10);
}

TEST(CacheSimulator, NoSlotsOrNoBytesIsNoCache) {
  for (const ChunkCacheSettings& none :
       {ChunkCacheSettings{.rdcc_nslots = 0}, ChunkCacheSettings{.rdcc_nbytes = 0}}) {
    CacheSimulator cache(ten_chunks(), none);
    cache.read(0);
    cache.read(0);
    EXPECT_EQ(cache.counts().piece_reads, 2);
    EXPECT_EQ(cache.chunks_held(), 0);
  }
}

TEST(CacheSimulator, ChunksOfTheSameSlotEvictEachOther) {
  CacheSimulator cache(ten_chunks(), {.rdcc_nslots = 5, .rdcc_nbytes = 1 << 20, .rdcc_w0 = 0});
  visit_chunks(cache, {0, 5, 0, 5});
  EXPECT_EQ(cache.counts().loads, 4);
  visit_chunks(cache, {1, 5});
  EXPECT_EQ(cache.counts().hits, 1);
}

TEST(CacheSimulator, TheHashCountsTheBitsOfEachAxis) {
  // 3 x 3 chunks, two bits for the second axis: (0,1) is 1 and (1,0) is 4, which meet in 3 slots.
  CacheSimulator cache({.shape = {3, 3}, .chunk_shape = {1, 1}, .element_bytes = 1},
                       {.rdcc_nslots = 3, .rdcc_nbytes = 100, .rdcc_w0 = 0});
  cache.read_box(Numbers{0, 1}, Numbers{1, 1});
  cache.read_box(Numbers{1, 0}, Numbers{1, 1});
  EXPECT_EQ(cache.counts().evictions, 1);
  cache.read_box(Numbers{0, 2}, Numbers{1, 1});
  EXPECT_EQ(cache.counts().evictions, 1);
}

TEST(CacheSimulator, AHitMovesAChunkBackByOnePlaceOnly) {
  CacheSimulator cache(ten_chunks(), room_for(3));
  visit_chunks(cache, {0, 1, 2, 0});  // 1, 0, 2
  visit_chunks(cache, {3});
  EXPECT_EQ(held(cache), (Numbers{0, 2, 3}));
  visit_chunks(cache, {4});
  EXPECT_EQ(held(cache), (Numbers{2, 3, 4}));
}

TEST(CacheSimulator, WhatWasReadCompletelyGoesFirst) {
  CacheSimulator cache(ten_chunks(), room_for(3, 0.9));
  cache.read(0);
  cache.read(10, 10);  // all of chunk 1
  cache.read(20);
  cache.read(30);
  EXPECT_EQ(held(cache), (Numbers{0, 2, 3}));
}

TEST(CacheSimulator, WithW0OneNothingUnreadIsEvicted) {
  CacheSimulator cache(ten_chunks(), room_for(3, 1));
  visit_chunks(cache, {0, 1, 2, 3, 4, 5});
  EXPECT_EQ(cache.chunks_held(), 6);
  EXPECT_GT(cache.bytes_held(), 300);
  // As soon as others are read completely, they make room.
  for (std::int64_t row = 10; row < 60; ++row) cache.read(row);
  cache.read(60);
  EXPECT_EQ(held(cache), (Numbers{0, 5, 6}));
}

TEST(CacheSimulator, AtTheEdgeOneReadingIsNotComplete) {
  // 95 samples: the last chunk has five. Reading them is half of its bytes.
  StoredGeometry geometry = ten_chunks();
  geometry.shape = {95, 10};
  CacheSimulator cache(geometry, room_for(1, 1));
  cache.read(90, 5);
  cache.read(0);
  EXPECT_EQ(cache.chunks_held(), 2);
  cache.read(90, 5);
  cache.read(10);
  EXPECT_EQ(cache.chunks_held(), 2);
  EXPECT_EQ(cache.counts().evictions, 1);
}

TEST(CacheSimulator, AReadOfSeveralChunksVisitsEach) {
  CacheSimulator cache(ten_chunks(), room_for(10));
  cache.read(5, 20);
  EXPECT_EQ(cache.counts().reads, 1);
  EXPECT_EQ(cache.counts().visits, 3);
  EXPECT_EQ(cache.counts().loads, 3);
  EXPECT_EQ(cache.counts().read_bytes, 200);
}

TEST(CacheSimulator, PiecesAreRequestedRunByRun) {
  // Chunks cut each sample of 4 x 6 bytes into two of 4 x 3: four runs each.
  const StoredGeometry cut{.shape = {8, 4, 6}, .chunk_shape = {2, 4, 3}, .element_bytes = 1};
  CacheSimulator cache(cut, {.rdcc_nslots = 0});
  cache.read(0);
  EXPECT_EQ(cache.counts().requests, 8);
  EXPECT_EQ(cache.counts().file_bytes, 24);
  // Half of it is one run in its chunk, and one in memory.
  cache.read_box(Numbers{0, 0, 0}, Numbers{1, 4, 3});
  EXPECT_EQ(cache.counts().requests, 9);
}

TEST(CacheSimulator, AbsentChunksReadNothing) {
  StoredGeometry geometry = ten_chunks();
  geometry.stored_bytes = {100, 0, 100, 0, 100, 0, 100, 0, 100, 0};
  CacheSimulator filling(geometry, room_for(10));
  visit_chunks(filling, {0, 1, 1});
  EXPECT_EQ(filling.counts().absent, 1);
  EXPECT_EQ(filling.counts().hits, 1);
  EXPECT_EQ(filling.counts().file_bytes, 100);
  geometry.fills_absent_chunks = false;
  CacheSimulator skipping(geometry, room_for(10));
  visit_chunks(skipping, {0, 1, 1});
  EXPECT_EQ(skipping.counts().absent, 2);
  EXPECT_EQ(skipping.chunks_held(), 1);
}

TEST(CacheSimulator, ReadEachIsOneReadASample) {
  CacheSimulator one(ten_chunks(), room_for(2));
  CacheSimulator other(ten_chunks(), room_for(2));
  const Numbers order{3, 99, 3, 42, 17, 42};
  one.read_each(order);
  for (const std::int64_t row : order) other.read(row);
  EXPECT_EQ(one.counts(), other.counts());
}

TEST(CacheSimulator, DefaultsChangedWithVersionTwo) {
  EXPECT_EQ(default_chunk_cache({1, 14, 6}).rdcc_nslots, 521U);
  EXPECT_EQ(default_chunk_cache({1, 14, 6}).rdcc_nbytes, 1U << 20);
  EXPECT_EQ(default_chunk_cache({2, 0, 0}).rdcc_nslots, 8191U);
  EXPECT_EQ(default_chunk_cache({2, 0, 0}).rdcc_nbytes, 8U << 20);
}

TEST(CacheSimulator, WhatCannotBeIsRefused) {
  using test::refusal;
  const auto refused = [](const StoredGeometry& geometry, const ChunkCacheSettings& settings) {
    return refusal([&] { const CacheSimulator cache(geometry, settings); });
  };
  StoredGeometry flat = ten_chunks();
  flat.chunk_shape = {10};
  EXPECT_NE(refused(flat, {}).find("[10] do not cut"), std::string::npos);
  StoredGeometry empty = ten_chunks();
  empty.chunk_shape = {0, 10};
  EXPECT_NE(refused(empty, {}).find("empty"), std::string::npos);
  StoredGeometry huge = ten_chunks();
  huge.chunk_shape = {std::int64_t{1} << 31, 10};
  EXPECT_NE(refused(huge, {}).find("4 GiB"), std::string::npos);
  StoredGeometry sizes = ten_chunks();
  sizes.stored_bytes = {1, 2};
  EXPECT_NE(refused(sizes, {}).find("2 stored sizes for 10"), std::string::npos);
  EXPECT_NE(refused(ten_chunks(), {.rdcc_w0 = 1.5}).find("rdcc_w0"), std::string::npos);
  StoredGeometry many{.shape = {std::int64_t{1} << 40}, .chunk_shape = {1}};
  test::expect_error(ErrorCode::out_of_resources, {"2^31"},
                     [&] { const CacheSimulator cache(many, {}); });
  CacheSimulator cache(ten_chunks(), {});
  EXPECT_NE(refusal([&] { cache.read(100); }).find("100"), std::string::npos);
  EXPECT_NE(refusal([&] { cache.read(99, 2); }).find("99"), std::string::npos);
  EXPECT_NE(refusal([&] { cache.read(-1); }).find("-1"), std::string::npos);
  (void)refusal([&] { cache.read_box(Numbers{0, 5}, Numbers{1, 6}); });
  (void)refusal([&] { cache.read_box(Numbers{0}, Numbers{1}); });
  EXPECT_EQ(cache.counts(), CacheCounts{});
}

/// What several versions of libhdf5 asked of the same files, as support/chunk_cache_counts.py saw.
TEST(CacheSimulator, CountsAreThoseOfEveryVersionOfLibhdf5) {
  std::ifstream in(std::string(CHUNKIO_TESTS_DIR) + "/golden/chunk_cache/counts.json");
  const nlohmann::json cases = nlohmann::json::parse(in);
  ASSERT_GE(cases.size(), 100U);
  std::set<std::string> versions;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(i);
    const nlohmann::json& made = cases[i];
    const bool filtered = made["filter"] != "none";
    StoredGeometry geometry{.shape = Shape(made["shape"].get<Numbers>()),
                            .chunk_shape = Shape(made["chunk"].get<Numbers>()),
                            .element_bytes = made["element_bytes"],
                            .filtered = filtered};
    if (filtered) geometry.stored_bytes = made["stored_bytes"].get<Numbers>();
    CacheSimulator cache(geometry, {.rdcc_nslots = made["rdcc_nslots"],
                                    .rdcc_nbytes = made["rdcc_nbytes"],
                                    .rdcc_w0 = made["rdcc_w0"]});
    const std::size_t rank = geometry.shape.rank();
    for (const nlohmann::json& read : made["reads"]) {
      const auto box = read.get<Numbers>();
      cache.read_box(std::span(box).first(rank), std::span(box).last(rank));
    }
    for (const auto& [version, counted] : made["counts"].items()) {
      versions.insert(version);
      EXPECT_EQ(cache.counts().requests, counted[0].get<std::int64_t>()) << version;
      EXPECT_EQ(cache.counts().file_bytes, counted[1].get<std::int64_t>()) << version;
    }
  }
  EXPECT_EQ(versions, (std::set<std::string>{"1.10.8", "1.12.2", "1.14.6", "2.0.0"}));
}

}  // namespace
}  // namespace chunkio::plan
