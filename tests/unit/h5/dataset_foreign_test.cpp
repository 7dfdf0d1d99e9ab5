// How images and fields of files of other programs are stored, and what cannot be read of them.
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/access.hpp"
#include "h5/decompressor.hpp"
#include "support/dataset_fixture.hpp"

namespace chunkio {
namespace {

using test::DatasetTest;
using test::expect_error;
using test::h5py_file;

TEST_F(DatasetTest, ContiguousDataIsOneRun) {
  const Dataset dataset = Dataset::open(h5py_file(folder_, "contiguous"));
  EXPECT_FALSE(dataset.info().stored.chunked);
  EXPECT_EQ(dataset.info().num_chunks, 0);
  EXPECT_FALSE(dataset.info().format_version);
  EXPECT_TRUE(dataset.info().class_names.empty());
  EXPECT_TRUE(internal::Access::impl(dataset)->leading->linear_offset);
  EXPECT_EQ(read_labels(dataset)[8], 1);  // int32 in the file
  expect_pattern(dataset);
}

TEST_F(DatasetTest, ChunksMayCutSamples) {
  const Dataset dataset = Dataset::open(h5py_file(folder_, "celeba_chunks"));
  const DatasetInfo& info = dataset.info();
  EXPECT_EQ(info.layout, Layout::nchw);
  EXPECT_EQ(info.height, 218);
  EXPECT_EQ(info.width, 178);
  EXPECT_EQ(info.stored.chunk_shape, (Shape{100, 3, 217, 178}));
  EXPECT_EQ(info.num_chunks, 4);
  EXPECT_FALSE(internal::Access::impl(dataset)->leading->whole_rows());
  EXPECT_EQ(internal::Access::impl(dataset)->leading->needs_libhdf5, "");
  EXPECT_GE(internal::Access::impl(dataset)->leading->chunk_cache_bytes,
            2 * 2 * 100 * 3 * 217 * 178);
  ASSERT_TRUE(info.labels);
  EXPECT_EQ(read_labels(dataset)[129], 129 % 7);
  expect_pattern(dataset);
}

TEST_F(DatasetTest, FiltersAreNamedInOrder) {
  const Dataset dataset = Dataset::open(h5py_file(folder_, "deflate"));
  EXPECT_EQ(dataset.info().stored.filters, (std::vector<std::string>{"shuffle", "deflate"}));
  EXPECT_EQ(internal::Access::impl(dataset)->leading->needs_libhdf5, "");
  EXPECT_FALSE(internal::Access::impl(dataset)->leading->linear_offset);
  EXPECT_LT(dataset.info().stored_bytes, 40 * 8 * 8 * 3);
  expect_pattern(dataset);
  expect_pattern(Dataset::open(h5py_file(folder_, "fletcher")));
}

TEST_F(DatasetTest, LzfIsReadWithoutAFilterOfLibhdf5) {
  const Dataset dataset = Dataset::open(h5py_file(folder_, "lzf"));
  EXPECT_EQ(dataset.info().stored.filters, (std::vector<std::string>{"shuffle", "lzf"}));
  EXPECT_EQ(internal::Access::impl(dataset)->leading->needs_libhdf5, "");
  expect_pattern(dataset);
  for (const char* name : {"lzf_masked", "lzf_odd_chunks", "lzf_large", "lzf_user_block"}) {
    SCOPED_TRACE(name);
    expect_pattern(Dataset::open(h5py_file(folder_, name)));
  }
}

TEST_F(DatasetTest, ChunksOfPluginsAreReadIfTheirLibraryIsThere) {
  const std::array<std::pair<std::string, int>, 3> filters{{{"zstd", h5::FilterStep::kZstandard},
                                                            {"lz4", h5::FilterStep::kLz4},
                                                            {"blosc", h5::FilterStep::kBlosc}}};
  for (const auto& [filter, number] : filters) {
    for (const char* kind : {"", "_cut"}) {
      const std::string name = filter + kind;
      SCOPED_TRACE(name);
      const std::string path = test::plugin_file(folder_, name);
      if (path.empty()) {
        std::cout << "there is no plugin of libhdf5 that writes " << filter << '\n';
        continue;
      }
      if (!h5::Decompressor::knows(number)) {
        refused(ErrorCode::unsupported, {path, filter, "hdf5plugin"}, path);
        continue;
      }
      const Dataset dataset = Dataset::open(path);
      EXPECT_EQ(internal::Access::impl(dataset)->leading->needs_libhdf5, "");
      EXPECT_LT(dataset.info().stored_bytes, dataset.size() * dataset.info().sample_bytes());
      expect_pattern(dataset);
    }
  }
}

TEST_F(DatasetTest, FieldsUnderLzfAreThoseOfAFileWithoutIt) {
  const Dataset lzf = Dataset::open(h5py_file(folder_, "lzf_fields"));
  const Dataset plain = Dataset::open(h5py_file(folder_, "plain_fields"));
  expect_pattern(lzf);
  EXPECT_EQ(read_labels(lzf), read_labels(plain));
  EXPECT_EQ(read_labels(lzf)[49], 49 * 3 % 7);
  ASSERT_EQ(lzf.info().fields.size(), plain.info().fields.size());
  EXPECT_GE(lzf.info().fields.size(), 11U);
  for (const FieldInfo& field : lzf.info().fields) {
    for (const std::int64_t piece : {std::int64_t{50}, std::int64_t{13}, std::int64_t{1}}) {
      for (std::int64_t first = 0; first < 50; first += piece) {
        const std::int64_t count = std::min(piece, 50 - first);
        const std::size_t size = static_cast<std::size_t>(count) * Dataset::row_bytes(field);
        std::vector<std::byte> here(size);
        std::vector<std::byte> there(size, std::byte{1});
        lzf.read_field(field.name, first, count, here);
        plain.read_field(field.name, first, count, there);
        ASSERT_EQ(here, there) << field.name << " from " << first;
      }
    }
  }
}

TEST_F(DatasetTest, ChunksBehindAnIndexAreNoRunThoughTheyMayLieInOne) {
  const Dataset dataset = Dataset::open(h5py_file(folder_, "whole_chunks"));
  EXPECT_FALSE(internal::Access::impl(dataset)->leading->linear_offset);
  EXPECT_EQ(internal::Access::impl(dataset)->leading->chunk_cache_bytes, 0);
  expect_pattern(dataset);
  expect_pattern(Dataset::open(h5py_file(folder_, "one_chunk")));
}

TEST_F(DatasetTest, AUserBlockShiftsEveryPosition) {
  const Dataset dataset = Dataset::open(h5py_file(folder_, "user_block"));
  EXPECT_TRUE(internal::Access::impl(dataset)->leading->linear_offset);
  expect_pattern(dataset);
}

TEST_F(DatasetTest, StorageThatWasNeverWrittenGivesTheFillValue) {
  const Dataset dataset = Dataset::open(h5py_file(folder_, "unallocated"));
  EXPECT_EQ(internal::Access::impl(dataset)->leading->needs_libhdf5, "storage is not allocated");
  EXPECT_EQ(test::read_rows(dataset, 5, 1), std::vector<std::byte>(192));
  const Dataset chunks = Dataset::open(h5py_file(folder_, "unallocated_chunks"));
  EXPECT_EQ(test::read_rows(chunks, 0, 1), std::vector<std::byte>(192, std::byte{9}));
  EXPECT_EQ(test::read_rows(chunks, 2, 2), test::pattern_rows(2, 2, 192));
  const Dataset shifted = Dataset::open(h5py_file(folder_, "unallocated_behind_user_block"));
  std::int64_t label = 0;
  shifted.read_field("labels", 39, 1, std::as_writable_bytes(std::span(&label, 1)));
  EXPECT_EQ(label, 7);
}

/// What `numbers` of the script wrote.
template <class Number>
void expect_numbers(const Dataset& dataset) {
  const DatasetInfo& info = dataset.info();
  EXPECT_EQ(info.leading.dtype, dtype_of<Number>());
  const std::int64_t elements = info.sample_shape().num_elements();
  for (const auto& [first, count] :
       {std::pair<std::int64_t, std::int64_t>{0, 40}, {5, 1}, {13, 9}}) {
    std::vector<Number> values(static_cast<std::size_t>(count * elements));
    dataset.read_field(info.leading.name, first, count, std::as_writable_bytes(std::span(values)));
    for (std::int64_t i = 0; i < count * elements; ++i) {
      ASSERT_EQ(values[static_cast<std::size_t>(i)],
                static_cast<Number>(1024 * (first + i / elements) + i % elements));
    }
  }
}

TEST_F(DatasetTest, WithoutImagesOtherNumbersLead) {
  const Dataset dataset = Dataset::open(h5py_file(folder_, "vectors"));
  const DatasetInfo& info = dataset.info();
  EXPECT_FALSE(info.has_images());
  EXPECT_EQ(info.leading.name, "x");
  EXPECT_EQ(info.leading.row_shape, Shape{784});
  EXPECT_EQ(info.sample_shape(), Shape{784});
  EXPECT_EQ(info.sample_bytes(), 784 * 4);
  EXPECT_EQ(info.num_samples, 40);
  EXPECT_EQ(info.stored.shape, (Shape{40, 784}));
  EXPECT_EQ(info.stored.dtype, DType::float32);
  EXPECT_EQ(info.images_path, "");
  EXPECT_EQ(info.height + info.width + info.channels, 0);
  EXPECT_EQ(info.labels->name, "labels");
  ASSERT_EQ(info.fields.size(), 1U);
  EXPECT_EQ(info.fields[0].name, "id");
  EXPECT_TRUE(info.left_out.empty());
  EXPECT_EQ(dataset.find_field("x")->row_shape, Shape{784});
  expect_numbers<float>(dataset);
  std::vector<std::byte> row(784 * 4);
  expect_error(ErrorCode::unsupported,
               {info.path, "x float32 [40,784] are no images", "option images"},
               [&] { dataset.read_images(0, 1, row); });
  EXPECT_THROW(require_images(info), Error);

  for (const char* name :
       {"vectors_chunked", "vectors_latest", "vectors_cut", "vectors_big_endian"}) {
    SCOPED_TRACE(name);
    expect_numbers<float>(Dataset::open(h5py_file(folder_, name)));
  }
  expect_numbers<double>(Dataset::open(h5py_file(folder_, "vectors_deflate")));
  expect_numbers<std::int32_t>(Dataset::open(h5py_file(folder_, "vectors_scaleoffset")));
  const Dataset lzf = Dataset::open(h5py_file(folder_, "vectors_lzf"));
  EXPECT_EQ(lzf.info().sample_shape(), (Shape{3, 5, 7, 2}));
  expect_numbers<std::int16_t>(lzf);
  EXPECT_EQ(Dataset::open(h5py_file(folder_, "vectors_bytes")).info().leading.dtype, DType::uint8);
}

TEST_F(DatasetTest, WhatLeadsCanBeNamed) {
  const std::string scalars = h5py_file(folder_, "vectors_one_axis");
  refused(ErrorCode::unsupported, {scalars, "holds no images", "x float32 [40]", "option images"},
          scalars);
  const Dataset scalar = Dataset::open(scalars, {.images = "x"});
  EXPECT_EQ(scalar.info().sample_shape(), Shape{});
  expect_numbers<float>(scalar);
  EXPECT_EQ(Dataset::open(scalars, {.images = "labels"}).info().labels, std::nullopt);

  const std::string several = h5py_file(folder_, "vectors_and_boxes");
  refused(ErrorCode::unsupported,
          {several, "several datasets that may lead it",
           "box float32 [40,4], more float32 [39,4], x float32 [40,784]", "option images"},
          several);
  const Dataset named = Dataset::open(several, {.images = "x"});
  expect_numbers<float>(named);
  EXPECT_EQ(named.info().fields.front().name, "box");
  // Labels say how many samples there are.
  EXPECT_EQ(Dataset::open(h5py_file(folder_, "vectors_beside_others")).info().leading.name, "x");
  const std::string one_hot = h5py_file(folder_, "vectors_one_hot");
  refused(ErrorCode::unsupported, {"x float32 [40,784], y int32 [40,40]"}, one_hot);

  refused(ErrorCode::invalid_argument, {"x float32 [40,784]", "leave out the option layout"},
          several, {.images = "x", .layout = Layout::nhwc});
  refused(ErrorCode::unsupported, {"x float32 [40,784] are no images", "scale"}, several,
          {.images = "x", .scale = PixelScale{0, 1}});
  const std::string text = h5py_file(folder_, "fields");
  refused(ErrorCode::unsupported, {"meta/name string [12] cannot lead"}, text,
          {.images = "meta/name"});
  refused(ErrorCode::unsupported, {"scalar float64 [] cannot lead"}, text, {.images = "scalar"});
}

TEST_F(DatasetTest, AnyArrayOfAnOwnFileCanLead) {
  const std::string path = folder_.file("own.h5");
  {
    DatasetWriter writer(path, test::small_spec(12), {.chunk_samples = 5});
    test::write_pattern(writer, test::small_spec(12));
    writer.close();
  }
  const Dataset dataset = Dataset::open(path, {.images = "source_index"});
  EXPECT_FALSE(dataset.info().has_images());
  EXPECT_EQ(dataset.info().leading.dtype, DType::int64);
  EXPECT_TRUE(dataset.info().digests_cover.empty());
  ASSERT_EQ(dataset.info().fields.size(), 1U);
  EXPECT_EQ(dataset.info().fields[0].name, "images");
  EXPECT_EQ(dataset.info().fields[0].row_shape, (Shape{6, 5, 3}));
}

TEST_F(DatasetTest, FloatsLeadUnlessTheyAreScaled) {
  for (const char* name : {"floats", "floats_and_masks", "floats_gray", "wide_integers"}) {
    SCOPED_TRACE(name);
    const std::string path = h5py_file(folder_, name);
    const Dataset dataset = Dataset::open(path);
    EXPECT_FALSE(dataset.info().has_images());
    EXPECT_EQ(dataset.info().sample_shape(), dataset.info().stored.shape.without_first_axis());
    expect_error(ErrorCode::unsupported,
                 {path, "other numbers than uint8", "h5pack repack", "scale = 0..1"},
                 [&] { require_images(dataset.info()); });
  }
}

TEST_F(DatasetTest, ScalingMakesPixelsOfOtherNumbers) {
  const std::vector<std::pair<const char*, PixelScale>> cases = {{"floats", {0, 1}},
                                                                 {"floats64_signed", {-1, 1}},
                                                                 {"floats_lzf", {0, 255}},
                                                                 {"floats_inverted", {1, 0}},
                                                                 {"wide_integers", {0, 255}}};
  for (const auto& [name, scale] : cases) {
    SCOPED_TRACE(name);
    const Dataset dataset = Dataset::open(h5py_file(folder_, name), {.scale = scale});
    EXPECT_EQ(dataset.info().stored.dtype, DType::uint8);
    EXPECT_FALSE(internal::Access::impl(dataset)->leading->linear_offset);
    expect_pattern(dataset);
  }
  const Dataset narrow = Dataset::open(h5py_file(folder_, "floats"), {.scale = PixelScale{0, 2}});
  const auto full = test::pattern_rows(0, 1, 192);
  const auto half = test::read_rows(narrow, 0, 1);
  for (std::size_t i = 0; i < half.size(); ++i) {
    // To nearest; halves either way, as floats have them.
    EXPECT_NEAR(std::to_integer<int>(half[i]), std::to_integer<int>(full[i]) / 2.0, 0.5 + 1e-5);
  }
}

TEST_F(DatasetTest, WhatScalingDoesNotCoverIsAnErrorOfItsRow) {
  const PixelScale scale{0, 1};
  const std::string outside = h5py_file(folder_, "floats_outside");
  const std::string nan = h5py_file(folder_, "floats_nan");
  const Dataset strict = Dataset::open(outside, {.scale = scale});
  expect_error(ErrorCode::unsupported,
               {outside, "row 17 of images has the number 1.5, outside of 0..1", "clip"},
               [&] { (void)test::read_rows(strict, 0, 40); });
  EXPECT_EQ(test::read_rows(strict, 0, 17), test::pattern_rows(0, 17, 192));
  for (const std::string& path : {outside, h5py_file(folder_, "floats_infinite")}) {
    const Dataset clipped = Dataset::open(path, {.scale = PixelScale{0, 1, true}});
    EXPECT_EQ(test::read_rows(clipped, 17, 1)[(3 * 8 + 2) * 3], std::byte{255});
  }
  const Dataset with_nan = Dataset::open(nan, {.scale = PixelScale{0, 1, true}});
  expect_error(ErrorCode::unsupported, {nan, "row 17 of images has a NaN"},
               [&] { (void)test::read_rows(with_nan, 10, 20); });
  const std::string uint8 = h5py_file(folder_, "contiguous");
  refused(ErrorCode::invalid_argument, {uint8, "uint8 already"}, uint8, {.scale = scale});
  for (const PixelScale& bad :
       {PixelScale{1, 1}, PixelScale{0, std::nan("")}, PixelScale{-1e308, 1e308}}) {
    refused(ErrorCode::invalid_argument, {"scale"}, outside, {.scale = bad});
  }
}

TEST_F(DatasetTest, LinksAndDataElsewhereAreRefused) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"soft_link", "images is a soft link"},
      {"soft_link_labels", "labels is a soft link"},
      {"external_link", "images is an external link"},
      {"external_storage", "external storage"},
      {"virtual", "virtual dataset"}};
  for (const auto& [name, part] : cases) {
    SCOPED_TRACE(name);
    const std::string path = h5py_file(folder_, name);
    refused(ErrorCode::refused_by_policy, {part}, path);
  }
  const std::string path = h5py_file(folder_, "soft_link_in_path");
  OpenOptions options;
  options.images = "alias/x";
  refused(ErrorCode::refused_by_policy, {"alias is a soft link"}, path, options);
  EXPECT_EQ(Dataset::open(path).info().images_path, "group/x");
}

TEST_F(DatasetTest, WhatLiesElsewhereIsReadWhenAllowed) {
  OpenOptions options;
  options.allow_external = true;
  for (const char* name : {"soft_link", "external_link", "virtual"}) {
    SCOPED_TRACE(name);
    const Dataset dataset = Dataset::open(h5py_file(folder_, name), options);
    EXPECT_EQ(dataset.size(), 5);
    expect_pattern(dataset);
  }
  EXPECT_EQ(read_labels(Dataset::open(h5py_file(folder_, "soft_link_labels"), options)),
            (std::vector<std::int64_t>{0, 1, 2, 3, 4}));
  const Dataset external = Dataset::open(h5py_file(folder_, "external_storage"), options);
  EXPECT_EQ(internal::Access::impl(external)->leading->needs_libhdf5, "external storage");
  EXPECT_EQ(test::read_rows(external, 4, 1), std::vector<std::byte>(192, std::byte{'s'}));
  EXPECT_EQ(internal::Access::impl(Dataset::open(h5py_file(folder_, "virtual"), options))
                ->leading->needs_libhdf5,
            "virtual dataset");
  options.images = "alias/x";
  expect_pattern(Dataset::open(h5py_file(folder_, "soft_link_in_path"), options));
}

TEST_F(DatasetTest, AllowedLinksThatLeadNowhereAreNoDatasets) {
  OpenOptions options;
  options.allow_external = true;
  const std::string path = h5py_file(folder_, "external_link");
  std::filesystem::remove(path + ".other");
  refused(ErrorCode::unsupported, {path}, path, options);
  const std::string loop = h5py_file(folder_, "soft_loop");
  refused(ErrorCode::corrupt_data, {loop, "too many links"}, loop, options);
}

TEST_F(DatasetTest, ImpossibleShapesAreErrors) {
  refused(ErrorCode::corrupt_data, {"is empty"}, h5py_file(folder_, "no_samples"));
  refused(ErrorCode::corrupt_data, {"larger than any dataset"}, h5py_file(folder_, "huge_shape"));
}

TEST_F(DatasetTest, FieldsWhoseBytesCannotBeCountedAreNone) {
  const std::string path = h5py_file(folder_, "huge_field");
  const Dataset dataset = Dataset::open(path);
  EXPECT_EQ(dataset.size(), std::int64_t{1} << 40);
  EXPECT_TRUE(dataset.info().fields.empty());
  std::vector<std::byte> row(8);
  for (const char* name : {"huge", "wide"}) {
    expect_error(ErrorCode::unsupported, {path, name, "is larger than any dataset"},
                 [&] { (void)dataset.find_field(name); });
    expect_error(ErrorCode::unsupported, {path, name, "is larger than any dataset"},
                 [&] { dataset.read_field(name, 0, 1, row); });
  }
  OpenOptions options;
  options.labels = "huge";
  refused(ErrorCode::unsupported, {path, "huge", "is larger than any dataset"}, path, options);
}

TEST_F(DatasetTest, LabelsBeyondInt64AreNotClipped) {
  const std::string path = h5py_file(folder_, "uint64_labels");
  const Dataset dataset = Dataset::open(path);
  std::int64_t label = 0;
  const auto out = std::as_writable_bytes(std::span(&label, 1));
  dataset.read_field("labels", 0, 1, out);
  EXPECT_EQ(label, std::numeric_limits<std::int64_t>::max());
  expect_error(ErrorCode::unsupported, {path, "rows 8 to 8", "of labels", "int64 cannot hold"},
               [&] { dataset.read_field("labels", 8, 1, out); });
  dataset.read_field("labels", 7, 1, out);
  EXPECT_EQ(label, 6);
}

/// A few bytes in the file would become 4 GiB of memory.
TEST_F(DatasetTest, LabelsAndFieldsInHugeChunksAreNotDecoded) {
  const std::string labels = h5py_file(folder_, "label_bomb");
  refused(ErrorCode::unsupported, {labels, "of labels are too large to decode"}, labels);
  const std::string path = h5py_file(folder_, "field_bomb");
  const Dataset dataset = Dataset::open(path);
  EXPECT_EQ(test::read_rows(dataset, 0, 4), test::pattern_rows(0, 4, 192));
  std::vector<std::byte> values(4 * 8);
  expect_error(ErrorCode::unsupported, {path, "of depth are too large to decode"},
               [&] { dataset.read_field("depth", 0, 4, values); });
  // Chunks count as they are stored, not as they are delivered.
  EXPECT_TRUE(Dataset::open(h5py_file(folder_, "small_labels")).info().labels);
}

TEST_F(DatasetTest, RowsThatCannotBeReadAreNamed) {
  const std::string path = h5py_file(folder_, "damaged_field");
  const Dataset dataset = Dataset::open(path);
  std::vector<std::byte> values(2 * 8);
  expect_error(ErrorCode::corrupt_data, {path, "rows 0 to 3) of depth", "deflate stream"},
               [&] { dataset.read_field("depth", 1, 2, values); });
}

TEST_F(DatasetTest, ChunksAreAsLongAsTheirShapeSays) {
  const std::string path = h5py_file(folder_, "short_chunks");
  const Dataset dataset = Dataset::open(path);
  std::vector<std::byte> values(std::size_t{4} * 6 * 8);
  expect_error(ErrorCode::corrupt_data, {path, "rows 0 to 1) of depth", "96 bytes"},
               [&] { dataset.read_field("depth", 0, 4, values); });
}

TEST_F(DatasetTest, WhenToFillMayBeDamaged) {
  const Dataset dataset = Dataset::open(h5py_file(folder_, "odd_fill_time"));
  std::vector<std::int64_t> values(4);
  dataset.read_field("depth", 0, 4, std::as_writable_bytes(std::span(values)));
  EXPECT_EQ(values, (std::vector<std::int64_t>{0, 1, 2, 3}));
}

/// Opened anew for each piece, libhdf5 would decode the chunk for each piece.
TEST_F(DatasetTest, AFieldStaysOpenUntilItsLastRow) {
  const Dataset dataset = Dataset::open(h5py_file(folder_, "label_pieces"));
  std::vector<std::int64_t> values(200000, -1);
  const h5::StoredArray* opened = nullptr;
  for (std::int64_t first = 0; first < 200000; first += 50000) {
    dataset.read_field("labels", first, 50000,
                       std::as_writable_bytes(std::span(values))
                           .subspan(static_cast<std::size_t>(first) * 8, 50000 * 8));
    if (first == 150000) break;
    const h5::StoredArray* const now = internal::Access::impl(dataset)->field_in_use.get();
    ASSERT_TRUE(now);
    EXPECT_TRUE(opened == nullptr || now == opened);
    EXPECT_GE(now->chunk_cache_bytes, 200000 * 8);
    opened = now;
  }
  EXPECT_FALSE(internal::Access::impl(dataset)->field_in_use);
  for (std::int64_t row = 0; row < 200000; ++row) {
    ASSERT_EQ(values[static_cast<std::size_t>(row)], row % 7);
  }
}

TEST_F(DatasetTest, DataInsideTheSuperblockIsAnError) {
  const std::string path = h5py_file(folder_, "contiguous");
  const std::array<std::int64_t, 2> place{
      internal::Access::impl(Dataset::open(path))->leading->linear_offset.value(), 40 * 8 * 8 * 3};
  const std::int64_t inside = 8;
  auto bytes = test::read_bytes(path);
  int found = 0;
  for (std::size_t at = 0; at + sizeof(place) <= bytes.size(); ++at) {
    if (std::memcmp(bytes.data() + at, place.data(), sizeof(place)) != 0) continue;
    std::memcpy(bytes.data() + at, &inside, sizeof(inside));
    ++found;
  }
  ASSERT_EQ(found, 1);
  test::write_bytes(path, bytes);
  refused(ErrorCode::corrupt_data, {path, "images begins at byte 8", "superblock"}, path);
}

TEST_F(DatasetTest, UnknownFiltersAreNamed) {
  const std::string path = h5py_file(folder_, "unknown_filter");
  refused(ErrorCode::unsupported, {path, "filter 32008", "hdf5plugin"}, path);
  try {
    Dataset::open(path);
  } catch (const Error& error) {
    // It drops datasets that it cannot decode, with a warning and exit code 0.
    EXPECT_EQ(std::string(error.what()).find("h5repack"), std::string::npos);
  }
}

TEST_F(DatasetTest, BoolsAreIntegers) {
  const Dataset dataset = Dataset::open(h5py_file(folder_, "label_bool"));
  ASSERT_TRUE(dataset.info().labels);
  EXPECT_EQ(read_labels(dataset), (std::vector<std::int64_t>{0, 1, 0, 1, 0, 1, 0, 0, 1}));
  ASSERT_EQ(dataset.info().fields.size(), 1U);
  EXPECT_EQ(dataset.info().fields[0].dtype, DType::int8);
  std::vector<std::byte> mask(18);
  dataset.read_field("mask", 0, 9, mask);
  EXPECT_EQ(mask, std::vector<std::byte>(18, std::byte{1}));
}

}  // namespace
}  // namespace chunkio
