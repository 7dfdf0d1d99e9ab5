#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <chunkio/error.hpp>
#include <chunkio/tuning.hpp>

#include "support/errors.hpp"

namespace chunkio {
namespace {

StoredLayout chunked(Shape shape, Shape chunk_shape, std::vector<std::string> filters = {}) {
  return {shape, DType::uint8, true, chunk_shape, std::move(filters)};
}

StoredLayout contiguous(DType dtype) { return {Shape{1000, 32, 32, 3}, dtype, false, {}, {}}; }

struct Case {
  std::string name;
  StoredLayout stored;
  /// Parts of each finding, the worst first.
  std::vector<std::vector<std::string>> findings = {};
};

TEST(ChunkingAdvice, EachLayoutIsToldWhatItCostsAndAWayOut) {
  const std::vector<Case> cases{
      {"whole images in 4 MiB", chunked({50'000, 32, 32, 3}, {1365, 32, 32, 3})},
      {"large ones, too", chunked({202'599, 218, 178, 3}, {36, 218, 178, 3})},
      {"small data in one chunk", chunked({20, 8, 8, 3}, {20, 8, 8, 3})},
      {"or in a larger one", chunked({20, 8, 8, 3}, {100, 8, 8, 3})},
      {"no data", {}},
      {"no samples", chunked({0, 8, 8, 3}, {1, 8, 8, 3})},
      {"contiguous", contiguous(DType::uint8), {{"contiguous", "as fast as chunks", "h5pack"}}},
      {"one row short of a whole image: two chunks an image, and a file twice the size",
       chunked({202'599, 3, 218, 178}, {100, 3, 217, 178}),
       {{"2 pieces", "axis 2: 217 of 218", "2 chunks", "113.7 KiB", "22.1 MiB", "(199x)",
         "1.99x the bytes", "chunks=(36,3,218,178)", "h5pack"},
        {"11.1 MiB", "1.0 MiB", "at least 2 reads", "chunk_shuffled"}}},
      {"cut on several axes",
       chunked({1000, 100, 64, 3}, {10, 30, 64, 1}),
       {{"12 pieces", "axis 1: 30 of 100", "axis 3: 1 of 3", "12 chunks"}, {"small"}}},
      {"filters",
       chunked({50'000, 32, 32, 3}, {300, 32, 32, 3}, {"shuffle", "deflate"}),
       {{"shuffle, deflate", "CPU", "300x", "once an epoch"}}},
      {"filtered chunks beyond the cache are read again for each image",
       chunked({50'000, 32, 32, 3}, {1365, 32, 32, 3}, {"deflate"}),
       {{"4.0 MiB", "1.0 MiB", "(1365x)", "rdcc_nbytes=268435456"}, {"deflate"}}},
      {"filtered chunks of one image only cost decoding",
       chunked({1000, 1024, 1024, 3}, {1, 1024, 1024, 3}, {"gzip"}),
       {{"gzip", "of a chunk on the CPU. "}}},
      {"small chunks",
       chunked({50'000, 32, 32, 3}, {1, 32, 32, 3}),
       {{"3.0 KiB", "50000 chunks", "chunks=(1365,32,32,3)", "4 MiB by default"}}},
      {"large chunks mix little",
       chunked({500'000, 32, 32, 3}, {40'000, 32, 32, 3}),
       {{"117.2 MiB", "40000 images", "only 2 chunks", "4 MiB by default"}}},
      {"one chunk for everything leaves nothing to shuffle",
       chunked({50'000, 32, 32, 3}, {50'000, 32, 32, 3}),
       {{"All 50000 images", "one chunk", "146.5 MiB", "h5pack"}}},
      {"chunks larger than their contents waste space",
       chunked({1000, 32, 32, 3}, {100, 64, 64, 3}),
       {{"4x the bytes", "chunks=(1000,32,32,3)"}}},
      {"float32", contiguous(DType::float32), {{"float32", "4x", "uint8"}, {"contiguous"}}},
      {"float64", contiguous(DType::float64), {{"8x"}, {"contiguous"}}}};
  for (const Case& told : cases) {
    SCOPED_TRACE(told.name);
    const std::vector<std::string> advice = chunking_advice(told.stored);
    EXPECT_EQ(advice.size(), told.findings.size());
    for (std::size_t i = 0; i < advice.size(); ++i) {
      SCOPED_TRACE(advice[i]);
      EXPECT_TRUE(advice[i].find("h5pack") != std::string::npos ||
                  advice[i].find("rdcc_nbytes") != std::string::npos);
      EXPECT_EQ(advice[i].find('\n'), std::string::npos);
      if (i >= told.findings.size()) continue;
      for (const std::string& part : told.findings[i]) {
        EXPECT_NE(advice[i].find(part), std::string::npos) << part;
      }
    }
  }
}

TEST(ChunkingAdvice, AbsurdAxesAreSpokenOfNotComputedWith) {
  const std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  EXPECT_FALSE(chunking_advice(chunked({huge, huge, huge, 3}, {1, 1, 1, 1})).empty());
}

TEST(ChunkingAdvice, RefusesChunksThatDoNotFitTheShape) {
  for (const Shape& chunk : {Shape{10, 8, 8}, Shape{10, 0, 8, 3}}) {
    test::expect_error(ErrorCode::invalid_argument, {chunk.to_string()}, [&] {
      (void)chunking_advice(chunked({10, 8, 8, 3}, chunk));
    });
  }
}

}  // namespace
}  // namespace chunkio
