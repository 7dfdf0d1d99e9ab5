#include "plan/cache_simulator.hpp"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/errors.hpp"
#include "support/h5_files.hpp"
#include "support/scratch.hpp"

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

TEST(CacheSimulator, AChunkIsLoadedOnceWhereItIsKept) {
  CacheSimulator cache(ten_chunks(), room_for(1));
  EXPECT_EQ(cache.counts().hit_rate(), 0);
  EXPECT_EQ(cache.counts().read_amplification(), 0);
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
}

/// The comparisons with libhdf5 read boxes.
TEST(CacheSimulator, ReadsOfSamplesAreThoseOfTheirBoxes) {
  std::mt19937 random(1);
  for (const std::int64_t columns : {10, 4}) {
    StoredGeometry geometry = ten_chunks();
    geometry.chunk_shape = {10, columns};
    for (const bool filtered : {false, true}) {
      geometry.filtered = filtered;
      CacheSimulator samples(geometry, room_for(3, 0.5));
      CacheSimulator boxes(geometry, room_for(3, 0.5));
      for (int i = 0; i < 300; ++i) {
        const auto count = static_cast<std::int64_t>(1 + random() % 15);
        const auto first = static_cast<std::int64_t>(random() % 100) * (101 - count) / 100;
        samples.read(first, count);
        samples.read_each(Numbers{first});
        boxes.read_box(Numbers{first, 0}, Numbers{count, 10});
        boxes.read_box(Numbers{first, 0}, Numbers{1, 10});
      }
      EXPECT_EQ(samples.counts(), boxes.counts());
    }
  }
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

/// Goes through a case of chunk_cache_counts.py. \param after_read  gets its number, and the
/// counts.
template <class AfterRead>
CacheCounts simulate(const nlohmann::json& made, AfterRead after_read) {
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
  for (std::size_t i = 0; i < made["reads"].size(); ++i) {
    const auto box = made["reads"][i].get<Numbers>();
    cache.read_box(std::span(box).first(rank), std::span(box).last(rank));
    after_read(i, cache.counts());
  }
  return cache.counts();
}

/// What several versions of libhdf5 asked of the same files.
TEST(CacheSimulator, CountsAreThoseOfEveryVersionOfLibhdf5) {
  std::ifstream in(std::string(CHUNKIO_TESTS_DIR) + "/golden/chunk_cache/counts.json");
  const nlohmann::json cases = nlohmann::json::parse(in);
  ASSERT_GE(cases.size(), 100U);
  std::set<std::string> versions;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(i);
    const CacheCounts counts = simulate(cases[i], [](std::size_t, const CacheCounts&) {});
    for (const auto& [version, counted] : cases[i]["counts"].items()) {
      versions.insert(version);
      EXPECT_EQ(counts.requests, counted[0].get<std::int64_t>()) << version;
      EXPECT_EQ(counts.file_bytes, counted[1].get<std::int64_t>()) << version;
    }
  }
  EXPECT_EQ(versions, (std::set<std::string>{"1.10.8", "1.12.2", "1.14.6", "2.0.0"}));
}

/// Random files, cache settings and orders: after each single read, what was predicted is what was
/// counted of libhdf5.
void compare_random_cases(int number) {
  const test::ScratchFolder folder;
  const std::string path = folder.file("cases.json");
  ASSERT_EQ(test::run_script("chunk_cache_counts.py", "compare '" + folder.path().string() + "' '" +
                                                          path + "' " + std::to_string(number) +
                                                          " " + std::to_string(test::test_seed())),
            0);
  std::ifstream in(path);
  CacheCounts all;
  std::set<std::string> orders;
  std::set<std::string> filters;
  for (const nlohmann::json& made : nlohmann::json::parse(in)) {
    SCOPED_TRACE(made.dump());
    const nlohmann::json& counted = made["after_each"];
    const CacheCounts counts = simulate(made, [&](std::size_t i, const CacheCounts& now) {
      EXPECT_EQ((Numbers{now.requests, now.file_bytes}), (Numbers{counted[i][0], counted[i][1]}))
          << "read " << i;
    });
    if (counts.piece_reads == 0) {
      EXPECT_EQ(counts.loads, counted.back()[2].get<std::int64_t>()) << "whole chunks";
    }
    EXPECT_EQ(counts.visits, counts.hits + counts.loads + counts.piece_reads);
    EXPECT_EQ(counts.reads, std::ssize(made["reads"]));
    if (::testing::Test::HasFailure()) return;
    all.hits += counts.hits;
    all.loads += counts.loads;
    all.piece_reads += counts.piece_reads;
    all.evictions += counts.evictions;
    orders.insert(made["order"]);
    filters.insert(made["filter"]);
  }
  // What all cases together must have come across, for a comparison to say something.
  EXPECT_GT(std::min({all.hits, all.loads, all.piece_reads, all.evictions}), number);
  EXPECT_EQ(orders.size(), 8U);
  EXPECT_EQ(filters.size(), 4U);
}

TEST(CacheSimulator, CountsOf400RandomCasesAreThoseOfLibhdf5) { compare_random_cases(400); }

TEST(EveryChunkCache, CountsOf3000RandomCasesAreThoseOfLibhdf5) { compare_random_cases(3000); }

}  // namespace
}  // namespace chunkio::plan
