// What a writer writes, and what it refuses to.
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <hdf5.h>

#include <chunkio/normalizer.hpp>
#include <chunkio/verify.hpp>

#include "base/access.hpp"
#include "base/digest.hpp"
#include "base/positional_io.hpp"
#include "support/dataset_writer_fixture.hpp"

namespace chunkio {
namespace {

using test::DatasetWriterTest;
using test::expect_error;
using test::RoundTrip;
using test::small_spec;
using test::some_statistics;
using test::write_file;

class DatasetWriterRoundTrip : public DatasetWriterTest,
                               public testing::WithParamInterface<RoundTrip> {};

TEST_P(DatasetWriterRoundTrip, HoldsWhatWasWrittenInEveryReadersView) {
  const auto [n, k, layout] = GetParam();
  write_file(path_, small_spec(n, layout), {.chunk_samples = k});
  EXPECT_EQ(folder_.names(), std::vector<std::string>{"out.h5"});
  EXPECT_TRUE(test::h5py_agrees(path_, GetParam()));
  const Dataset dataset = Dataset::open(path_);
  EXPECT_EQ(dataset.info().layout, layout);
  ASSERT_TRUE(internal::Access::impl(dataset)->leading->linear_offset)
      << internal::Access::impl(dataset)->leading->needs_libhdf5;
  expect_complete(n);

  // The digests are those of format.md: pixels, then labels, then source rows, each the seed of the
  // next. Unused rows are zero.
  const std::vector<std::uint64_t> stored = test::stored_digests(dataset);
  const std::vector<std::byte> pixels = test::read_rows(dataset, 0, n);
  for (std::int64_t row = 0; row < n; ++row) {
    const std::int64_t label = row % 3;
    const std::int64_t source = n - 1 - row;
    std::uint64_t digest = XXH3_64bits(pixels.data() + row * 90, 90);
    digest = XXH3_64bits_withSeed(&label, sizeof(label), digest);
    digest = XXH3_64bits_withSeed(&source, sizeof(source), digest);
    ASSERT_EQ(stored[static_cast<std::size_t>(row)], digest) << row;
  }
  EXPECT_EQ(dataset.info().digests_cover,
            (std::vector<std::string>{"images", "labels", "source_index"}));
  const std::int64_t chunk_bytes = std::min(k, n) * 90;
  std::vector<std::byte> chunk(static_cast<std::size_t>(chunk_bytes));
  for (std::int64_t i = 0; i < dataset.info().num_chunks; ++i) {
    internal::Access::impl(dataset)->bytes->read_at(
        *internal::Access::impl(dataset)->leading->linear_offset + i * chunk_bytes, chunk, {});
  }
  const std::int64_t used = (n - (dataset.info().num_chunks - 1) * std::min(k, n)) * 90;
  EXPECT_TRUE(
      std::all_of(chunk.begin() + used, chunk.end(), [](std::byte b) { return b == std::byte{}; }));
}

INSTANTIATE_TEST_SUITE_P(Shapes, DatasetWriterRoundTrip,
                         testing::Values(RoundTrip{40, 16, Layout::nhwc},
                                         RoundTrip{40, 16, Layout::nchw},
                                         RoundTrip{32, 16, Layout::nhwc},
                                         RoundTrip{7, 1, Layout::nhwc},
                                         RoundTrip{5, 100, Layout::nhwc}),
                         [](const auto& param) {
                           return std::string(to_string(param.param.layout)) +
                                  std::to_string(param.param.num_samples) + "by" +
                                  std::to_string(param.param.chunk_samples);
                         });

TEST_F(DatasetWriterTest, UsesTheImplicitChunkIndexOnAlignedSpace) {
  DatasetSpec spec = small_spec(3000);
  write_file(path_, spec, {.chunk_samples = 10});
  {
    const h5::FileId file(H5Fopen(path_.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
    const h5::DatasetId images(H5Dopen2(file.get(), "images", H5P_DEFAULT));
    H5D_chunk_index_t index = H5D_CHUNK_IDX_BTREE;
    ASSERT_GE(H5Dget_chunk_index_type(images.get(), &index), 0);
    EXPECT_EQ(index, H5D_CHUNK_IDX_NONE);
  }
  EXPECT_EQ(*internal::Access::impl(Dataset::open(path_))->leading->linear_offset % 4096, 0);
}

TEST_F(DatasetWriterTest, ChunksMayComeInAnyOrderFromAnyThread) {
  const DatasetSpec spec = small_spec(200);
  for (const int deflate : {0, 1}) {
    DatasetWriter writer(
        path_, spec, {.chunk_samples = 3, .filter = {.deflate_level = deflate}, .overwrite = true});
    EXPECT_EQ(writer.num_chunks(), 67);
    EXPECT_EQ(writer.chunk_bytes(), 270);
    {
      std::vector<std::jthread> threads;
      for (std::int64_t thread = 0; thread < 4; ++thread) {
        threads.emplace_back([&, thread] {
          for (std::int64_t chunk = 66 - thread; chunk >= 0; chunk -= 4) {
            writer.write_chunk(
                chunk,
                test::pattern_rows(chunk * 3, std::min<std::int64_t>(3, 200 - chunk * 3), 90));
          }
        });
      }
    }
    writer.close();
    writer.close();
    expect_complete(200);
    EXPECT_TRUE(Dataset::open(path_).info().statistics);
    EXPECT_TRUE(verify_chunks(Dataset::open(path_)).damaged.empty());
  }
}

TEST_F(DatasetWriterTest, KeepsLongNamesTablesAndFurtherFields) {
  DatasetSpec spec = small_spec(12);
  spec.class_names.clear();
  for (int i = 0; i < 3000; ++i)
    spec.class_names.push_back("class " + std::string(40, 'x') + std::to_string(i));
  spec.fields.push_back(test::field("boxes/face", std::vector<float>(48, 1.5F), Shape{4}));
  spec.fields.push_back(
      test::field("boxes/mask", std::vector<std::uint8_t>(12 * 30, 7), Shape{6, 5}));
  {
    DatasetWriter writer(path_, spec, {});
    test::write_pattern(writer, spec);
    writer.close();
  }
  const Dataset dataset = Dataset::open(path_);
  EXPECT_EQ(dataset.info().class_names, spec.class_names);
  ASSERT_EQ(dataset.info().fields.size(), 3U);
  EXPECT_EQ(dataset.info().fields[1].name, "boxes/mask");
  EXPECT_EQ(dataset.info().fields[1].row_shape, (Shape{6, 5}));

  DatasetSpec table = small_spec(12);
  table.class_names.clear();
  table.attribute_names = {"Smiling", "Young"};
  table.fields = {test::field("labels", std::vector<std::uint8_t>(24, 1), Shape{2})};
  {
    DatasetWriter writer(folder_.file("table.h5"), table, {});
    test::write_pattern(writer, table);
    writer.close();
  }
  const Dataset second = Dataset::open(folder_.file("table.h5"));
  EXPECT_EQ(second.info().attribute_names, table.attribute_names);
  EXPECT_EQ(second.info().labels->row_shape, (Shape{2}));
  EXPECT_NE(second.info().uuid, dataset.info().uuid);
}

TEST_F(DatasetWriterTest, AConstantChannelLeavesStatisticsOut) {
  const DatasetSpec spec = small_spec(4);
  DatasetWriter writer(path_, spec, {});
  test::write_pattern(writer, spec);
  writer.set_statistics({{{0.1, 0.2, 0.3}, {0.1, 0.0, 0.3}}, {2, 1, 1}});
  writer.close();
  EXPECT_FALSE(Dataset::open(path_).info().statistics);
  EXPECT_EQ(Dataset::open(path_).info().class_counts, (std::vector<std::int64_t>{2, 1, 1}));
}

TEST_F(DatasetWriterTest, StatisticsAreComputedUnlessTheyAreGivenOrNotWanted) {
  for (const int deflate : {0, 1}) {
    // Three images of one row: of 0, of 255, and half of both.
    DatasetSpec spec = small_spec(3);
    spec.height = 1;
    spec.width = 2;
    std::vector<std::byte> pixels(3 * 6);
    std::fill(pixels.begin() + 6, pixels.begin() + 15, std::byte{255});
    const auto write = [&](WriterOptions options, bool give) {
      options.chunk_samples = 2;
      options.filter.deflate_level = deflate;
      options.overwrite = true;
      DatasetWriter writer(path_, spec, options);
      writer.write_chunk(1, std::span(pixels).subspan(12));
      writer.write_chunk(0, std::span(pixels).first(12));
      if (give) writer.set_statistics(some_statistics(3));
      writer.close();
      return Dataset::open(path_).info();
    };
    const DatasetInfo computed = write({}, false);
    ASSERT_TRUE(computed.statistics);
    EXPECT_EQ(computed.statistics->mean, (std::vector<double>{0.5, 0.5, 0.5}));
    EXPECT_EQ(computed.statistics->std, (std::vector<double>{0.5, 0.5, 0.5}));
    EXPECT_EQ(computed.mean_picture_std, std::vector<double>(3, 42.5 / 255));
    EXPECT_EQ(computed.class_counts, (std::vector<std::int64_t>{1, 1, 1}));
    EXPECT_NO_THROW(Normalizer(computed, {}));

    EXPECT_EQ(write({}, true).statistics->mean, some_statistics(3).channels.mean);
    const DatasetInfo none = write({.statistics = false}, false);
    EXPECT_FALSE(none.statistics);
    EXPECT_TRUE(none.class_counts.empty());
  }
}

TEST_F(DatasetWriterTest, StatisticsOfAShortenedFileAreOfItsRows) {
  const DatasetSpec fewer = small_spec(5);
  DatasetWriter writer(path_, small_spec(8), {.chunk_samples = 4});
  writer.write_chunk(0, test::pattern_rows(0, 4, 90));
  writer.write_chunk(1, test::pattern_rows(4, 1, 90));
  writer.set_rows(5, fewer.fields);
  writer.close();
  const DatasetInfo shortened = Dataset::open(path_).info();
  DatasetWriter whole(path_ + "2", fewer, {});
  test::write_pattern(whole, fewer);
  whole.close();
  const DatasetInfo same = Dataset::open(path_ + "2").info();
  ASSERT_TRUE(shortened.statistics && same.statistics);
  EXPECT_EQ(shortened.statistics->mean, same.statistics->mean);
  EXPECT_EQ(shortened.statistics->std, same.statistics->std);
  EXPECT_EQ(shortened.class_counts, (std::vector<std::int64_t>{2, 2, 1}));
}

TEST_F(DatasetWriterTest, EveryChunkIsWrittenOnceAndWhole) {
  const DatasetSpec spec = small_spec(10);
  DatasetWriter writer(path_, spec, {.chunk_samples = 4});
  const auto rows = test::pattern_rows(0, 4, 90);
  expect_error(ErrorCode::invalid_argument, {"takes 180 bytes"},
               [&] { writer.write_chunk(2, rows); });
  expect_error(ErrorCode::invalid_argument, {"3 chunks"}, [&] { writer.write_chunk(3, rows); });
  expect_error(ErrorCode::invalid_argument, {"3 chunks"}, [&] { writer.write_chunk(-1, rows); });
  writer.write_chunk(0, rows);
  expect_error(ErrorCode::invalid_argument, {"written twice"},
               [&] { writer.write_chunk(0, rows); });
  expect_error(ErrorCode::invalid_argument, {"chunk 1 was not written"}, [&] { writer.close(); });
  // That was a mistake of the caller, which can be made good.
  writer.write_chunk(1, test::pattern_rows(4, 4, 90));
  writer.write_chunk(2, test::pattern_rows(8, 2, 90));
  writer.close();
  expect_error(ErrorCode::invalid_argument, {"after close"}, [&] { writer.write_chunk(0, rows); });
  expect_complete(10);
}

TEST_F(DatasetWriterTest, SpecificationsThatCannotBeAreRefused) {
  const auto refused = [&](const std::string& part,
                           const std::function<void(DatasetSpec&)>& change) {
    SCOPED_TRACE(part);
    DatasetSpec spec = small_spec(6);
    change(spec);
    expect_error(ErrorCode::invalid_argument, {part}, [&] { DatasetWriter(path_, spec, {}); });
    EXPECT_TRUE(folder_.names().empty());
  };
  refused("at least 1", [](DatasetSpec& s) { s.num_samples = 0; });
  refused("at least 1", [](DatasetSpec& s) { s.channels = -3; });
  refused("too large", [](DatasetSpec& s) { s.height = s.width = std::int64_t{1} << 40; });
  refused("channel_order RGB does not fit 4 channels; set it to what they are, such as RGBA",
          [](DatasetSpec& s) { s.channels = 4; });
  refused("channel_order gray does not fit 3 channels",
          [](DatasetSpec& s) { s.channel_order = "gray"; });
  refused("order must be", [](DatasetSpec& s) { s.order = "random"; });
  refused("field labels", [](DatasetSpec& s) { s.fields[0].values.pop_back(); });
  refused("label 3 of sample 0 is none of the 3 classes",
          [](DatasetSpec& s) { s.fields[0].values[0] = std::byte{3}; });
  refused("give float32", [](DatasetSpec& s) {
    s.fields[1].info.dtype = DType::float16;
    s.fields[1].values.resize(12);
  });
  refused("labels must be",
          [](DatasetSpec& s) { s.fields[0] = test::field("labels", std::vector<float>(6, 0.0F)); });
  refused("2 attribute names for 3", [](DatasetSpec& s) {
    s.attribute_names = {"a", "b"};
    s.fields[0] = test::field("labels", std::vector<std::uint8_t>(18, 0), Shape{3});
  });
  refused("source_index must be", [](DatasetSpec& s) {
    s.fields[1] = test::field("source_index", std::vector<float>(6, 0.0F));
  });
  for (const char* name :
       {"", "/x", "x/", "a//b", "a/./b", "images/x", "sample_digests/x", "labels"}) {
    refused("field name", [&](DatasetSpec& s) { s.fields[1].info.name = name; });
  }
  for (const char* name : {"images", "sample_digests"}) {
    refused("field name '" + std::string(name) + "' is that of a dataset which every file has",
            [&](DatasetSpec& s) { s.fields[1].info.name = name; });
  }
  refused("zero byte", [](DatasetSpec& s) { s.class_names[1] = std::string("a\0b", 3); });
  refused("longer than", [](DatasetSpec& s) { s.class_names[1] = std::string(5000, 'x'); });
  expect_error(ErrorCode::invalid_argument, {"chunk_samples"},
               [&] { DatasetWriter(path_, small_spec(6), {.chunk_samples = -1}); });
  expect_error(ErrorCode::invalid_argument, {"chunk"},
               [&] { DatasetWriter(path_, small_spec(6), {.chunk_bytes = 0}); });
}

TEST_F(DatasetWriterTest, StatisticsThatCannotBeAreRefused) {
  DatasetWriter writer(path_, small_spec(6), {});
  expect_error(ErrorCode::invalid_argument, {"3 channels"}, [&] {
    writer.set_statistics({{{0.1}, {0.1}}, {}});
  });
  expect_error(ErrorCode::invalid_argument, {"finite"}, [&] {
    writer.set_statistics({{{0.1, 0.1, 0.1}, {0.1, 0.1, 0.0 / 0.0}}, {}});
  });
  expect_error(ErrorCode::invalid_argument, {"2 class counts for 3"}, [&] {
    writer.set_statistics({{}, {3, 3}});
  });
  expect_error(ErrorCode::invalid_argument, {"class counts"}, [&] {
    writer.set_statistics({{}, {3, 4, -1}});
  });
  expect_error(ErrorCode::invalid_argument, {"mean_picture_std", "3 channels"}, [&] {
    writer.set_statistics({{}, {}, {0.1}, {}});
  });
  const std::vector<SourceSizes> impossible = {
      {0, 9, 1, 9, {{9, 9, 6}}},           {9, 8, 1, 9, {{9, 9, 6}}}, {1, 9, 1, 9, {{9, 10, 6}}},
      {1, 9, 1, 9, {{9, 9, 7}}},           {1, 9, 1, 9, {{9, 9, 0}}}, {1, 9, 1, 9, {}},
      {1, 9, 1, 9, {{9, 9, 4}, {8, 8, 3}}}};
  for (const SourceSizes& sizes : impossible) {
    expect_error(ErrorCode::invalid_argument, {"source sizes"}, [&] {
      writer.set_statistics({{}, {}, {}, sizes});
    });
  }
}

TEST_F(DatasetWriterTest, MoreClassCountsThanReadersTakeAreRefusedAtOnce) {
  DatasetSpec spec = small_spec(6);
  spec.class_names.clear();
  DatasetWriter writer(path_, spec, {});
  std::vector<std::int64_t> counts((std::size_t{1} << 20) + 1);
  expect_error(ErrorCode::invalid_argument, {"1048576 class counts"}, [&] {
    writer.set_statistics({{}, counts});
  });
  counts.pop_back();
  writer.set_statistics({{}, counts});
  test::write_pattern(writer, spec);
  writer.close();
  EXPECT_EQ(Dataset::open(path_).info().class_counts, counts);
}

// ---- Fields that are not held in memory ----

/// `field` in blocks of `rows`.
FieldData streamed(const FieldData& field, std::size_t rows) {
  const std::size_t block = rows * Dataset::row_bytes(field.info);
  return {.info = field.info, .stream = [field, block](const FieldData::Sink& sink) {
            for (std::size_t at = 0; at < field.values.size(); at += block) {
              sink(std::span(field.values).subspan(at, std::min(block, field.values.size() - at)));
            }
          }};
}

TEST_F(DatasetWriterTest, StreamedFieldsAreWrittenAsOthersAre) {
  const DatasetSpec spec = small_spec(40);
  write_file(path_, spec, {.chunk_samples = 8});
  for (const std::size_t rows : {1U, 7U, 40U, 100U}) {
    DatasetSpec other = spec;
    for (FieldData& field : other.fields) field = streamed(field, rows);
    write_file(folder_.file("streamed.h5"), other, {.chunk_samples = 8, .overwrite = true});
    const Dataset expected = Dataset::open(path_);
    const Dataset found = Dataset::open(folder_.file("streamed.h5"));
    for (const FieldData& field : spec.fields) {
      std::vector<std::byte> values(field.values.size());
      found.read_field(field.info.name, 0, 40, values);
      EXPECT_TRUE(values == field.values) << field.info.name;
    }
    EXPECT_EQ(found.info().class_counts, expected.info().class_counts);
  }
}

TEST_F(DatasetWriterTest, AStreamOfTheWrongLengthOrWithAWrongLabelIsRefused) {
  DatasetSpec spec = small_spec(10);
  for (FieldData& field : spec.fields) {
    FieldData good = std::exchange(
        field,
        streamed(small_spec(9).fields[static_cast<std::size_t>(&field - spec.fields.data())], 4));
    expect_error(ErrorCode::invalid_argument, {field.info.name, "bytes for 10 samples"},
                 [&] { DatasetWriter(path_, spec); });
    field = std::move(good);
  }
  EXPECT_TRUE(folder_.names().empty());
}

}  // namespace
}  // namespace chunkio
