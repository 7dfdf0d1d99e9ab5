// Files that a writer filters.
#include <unistd.h>

#include <array>
#include <filesystem>
#include <random>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include <chunkio/verify.hpp>

#include "base/access.hpp"
#include "support/child.hpp"
#include "support/dataset_writer_fixture.hpp"

namespace chunkio {
namespace {

using test::DatasetWriterTest;
using test::expect_error;
using test::in_child;
using test::RoundTrip;
using test::small_spec;
using test::write_file;

/// small_spec(n) written with a filter is the same file to every reader, and sound.
class DatasetWriterFilter : public DatasetWriterTest,
                            public testing::WithParamInterface<std::tuple<ChunkFilter, RoundTrip>> {
};

TEST_P(DatasetWriterFilter, HoldsTheSameAsWithout) {
  const auto& [filter, shape] = GetParam();
  const auto& [n, k, layout] = shape;
  write_file(folder_.file("plain.h5"), small_spec(n, layout), {.chunk_samples = k});
  write_file(path_, small_spec(n, layout), {.chunk_samples = k, .filter = filter});
  EXPECT_TRUE(test::h5py_agrees(path_, shape, "gzip"));
  expect_complete(n);
  const Dataset plain = Dataset::open(folder_.file("plain.h5"));
  const Dataset dataset = Dataset::open(path_);
  EXPECT_EQ(test::stored_digests(dataset), test::stored_digests(plain));
  EXPECT_EQ(dataset.info().stored.filters, filter.shuffle
                                               ? (std::vector<std::string>{"shuffle", "deflate"})
                                               : std::vector<std::string>{"deflate"});
  EXPECT_TRUE(verify_chunks(dataset).damaged.empty());
}

INSTANTIATE_TEST_SUITE_P(
    Filters, DatasetWriterFilter,
    testing::Combine(
        testing::Values(ChunkFilter{1, false}, ChunkFilter{9, false}, ChunkFilter{6, true}),
        testing::Values(RoundTrip{40, 16, Layout::nhwc}, RoundTrip{40, 16, Layout::nchw},
                        RoundTrip{7, 1, Layout::nhwc}, RoundTrip{5, 100, Layout::nhwc})));

TEST_F(DatasetWriterTest, PixelsThatDoNotShrinkAreStoredAsTheyAre) {
  DatasetSpec spec = small_spec(20);
  std::mt19937 random(5);
  std::vector<std::byte> noise(20 * 90);
  for (std::byte& byte : noise) byte = static_cast<std::byte>(random());
  for (const bool shuffle : {false, true}) {
    DatasetWriter writer(path_, spec,
                         {.chunk_samples = 8,
                          .filter = {.deflate_level = 9, .shuffle = shuffle},
                          .overwrite = true});
    for (std::int64_t chunk = 0; chunk < 3; ++chunk) {
      const auto first = static_cast<std::size_t>(chunk) * 8 * 90;
      writer.write_chunk(chunk, std::span(noise).subspan(first, chunk == 2 ? 4 * 90 : 8 * 90));
    }
    writer.close();
    const Dataset dataset = Dataset::open(path_);
    EXPECT_TRUE(test::read_rows(dataset, 0, 20) == noise);
    EXPECT_TRUE(verify_chunks(dataset).damaged.empty());
    const std::array<std::int64_t, 4> coord = {1, 0, 0, 0};
    const h5::ChunkEntry entry = internal::Access::impl(dataset)->leading->index->find(coord);
    EXPECT_EQ(entry.stored_bytes, 8 * 90);
    EXPECT_EQ(entry.filter_mask, shuffle ? 2U : 1U);
  }
}

TEST_F(DatasetWriterTest, RefusesFiltersThatCannotBe) {
  const DatasetSpec spec = small_spec(4);
  for (const ChunkFilter filter :
       {ChunkFilter{10, false}, ChunkFilter{-1, false}, ChunkFilter{0, true}}) {
    expect_error(ErrorCode::invalid_argument, {"deflate_level"},
                 [&] { DatasetWriter(path_, spec, {.filter = filter}); });
  }
  DatasetSpec large = small_spec(4);
  large.height = 8192;
  large.width = 8192;
  expect_error(ErrorCode::invalid_argument, {"chunk_samples", "268435456"}, [&] {
    DatasetWriter(path_, large, {.chunk_samples = 2, .filter = {.deflate_level = 1}});
  });
  DatasetWriter writer(path_, spec, {.filter = {.deflate_level = 1}});
  expect_error(ErrorCode::unsupported, {path_, "filter"},
               [&] { writer.set_rows(3, small_spec(3).fields); });
}

TEST_F(DatasetWriterTest, AFilteredFileIsBegunAgainAndNeverOverAnotherRun) {
  const DatasetSpec spec = small_spec(40);
  const WriterOptions plain{.chunk_samples = 4, .identity = "{}", .resume = true};
  WriterOptions filtered = plain;
  filtered.filter = {.deflate_level = 3};
  // What a killed writer leaves.
  EXPECT_EQ(in_child([&] {
              DatasetWriter writer(path_, spec, filtered);
              writer.write_chunk(0, test::pattern_rows(0, 4, 90));
              writer.commit();
              ::_exit(writer.committed() ? 1 : 0);
              return 2;
            }),
            0);
  EXPECT_EQ(folder_.names(), std::vector<std::string>{"out.h5.partial"});
  WriterOptions unwilling = filtered;
  unwilling.resume = false;
  expect_error(ErrorCode::output_exists, {"out.h5.partial", "resume"},
               [&] { DatasetWriter(path_, spec, unwilling); });
  {
    DatasetWriter writer(path_, spec, filtered);
    EXPECT_TRUE(writer.resumed().empty());
    test::write_pattern(writer, spec);
    writer.close();
  }
  expect_complete(40);
  std::filesystem::remove(path_);

  EXPECT_EQ(in_child([&] {
              DatasetWriter writer(path_, spec, plain);
              writer.write_chunk(0, test::pattern_rows(0, 4, 90));
              writer.commit();
              ::_exit(0);
              return 2;
            }),
            0);
  expect_error(ErrorCode::invalid_argument, {"another run", "filter", "deflate:3"},
               [&] { DatasetWriter(path_, spec, filtered); });
  DatasetWriter writer(path_, spec, plain);
  EXPECT_EQ(writer.resumed().size(), 1U);
}

}  // namespace
}  // namespace chunkio
