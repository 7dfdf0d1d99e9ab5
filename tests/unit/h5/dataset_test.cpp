#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>

#include <gtest/gtest.h>
#include <hdf5.h>

#include <chunkio/dataset.hpp>

#include "h5/attributes.hpp"
#include "h5/dataset_impl.hpp"
#include "h5/error_stack.hpp"
#include "h5/library.hpp"
#include "h5/schema.hpp"
#include "support/h5_files.hpp"

namespace chunkio {
namespace {

using test::expect_error;
using test::h5py_file;
using test::ScratchFolder;

class DatasetTest : public testing::Test {
 protected:
  ~DatasetTest() override { EXPECT_EQ(h5::live_ids(), 0) << "an HDF5 id leaked"; }

  /// A small file of this library, closed.
  std::string own_file(std::int64_t num_samples = 20, std::int64_t chunk_samples = 8) {
    const DatasetSpec spec = test::small_spec(num_samples);
    std::string path = folder_.file("own.h5");
    DatasetWriter writer(path, spec, {.chunk_samples = chunk_samples, .overwrite = true});
    test::write_pattern(writer, spec);
    writer.set_statistics({{{0.25, 0.5, 0.75}, {0.1, 0.2, 0.3}}, {7, 7, 6}});
    writer.close();
    return path;
  }

  /// Lets `change` replace things in the file `path`.
  template <class Change>
  static void alter(const std::string& path, Change change) {
    const auto guard = h5::Library::lock();
    h5::FileId file(h5::check_id(H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), "open", path));
    h5::DatasetId images(h5::check_id(H5Dopen2(file.get(), "images", H5P_DEFAULT), "open", path));
    change(file.get(), images.get());
  }

  /// Every image equals the pattern, read at once and in pieces.
  static void expect_pattern(const Dataset& dataset) {
    const std::int64_t n = dataset.size();
    const auto expected = test::pattern_rows(0, n, dataset.info().sample_bytes());
    EXPECT_TRUE(test::read_rows(dataset, 0, n) == expected);
    EXPECT_TRUE(test::read_rows(dataset, n / 2, 1) ==
                test::pattern_rows(n / 2, 1, dataset.info().sample_bytes()));
    EXPECT_TRUE(test::read_rows(dataset, n, 0).empty());
    if (const auto offset = dataset.impl()->images->linear_offset) {
      // What positional reads would deliver.
      std::vector<std::byte> bytes(expected.size());
      base::read_at(dataset.impl()->descriptor.get(), *offset, bytes, "file");
      EXPECT_TRUE(bytes == expected);
    }
  }

  std::vector<std::int64_t> read_labels(const Dataset& dataset) {
    std::vector<std::int64_t> labels(static_cast<std::size_t>(dataset.size()));
    dataset.read_field(dataset.info().labels->name, 0, dataset.size(),
                       std::as_writable_bytes(std::span(labels)));
    return labels;
  }

  ScratchFolder folder_;
};

TEST_F(DatasetTest, AFolderNamesTheFilesInIt) {
  const std::string folder = folder_.file("");
  expect_error(ErrorCode::unsupported, {"is a folder", "give the path of an HDF5 file"},
               [&] { (void)Dataset::open(folder); });
  own_file();
  expect_error(ErrorCode::unsupported, {"is a folder", "open one of its files", "own.h5"},
               [&] { (void)Dataset::open(folder); });
  const std::string parts = folder_.file("parts");
  std::filesystem::create_directory(parts);
  for (const char* const number : {"00000", "00001", "00002", "00003"}) {
    test::write_bytes(parts + "/a-" + number + "-of-00004.h5", {});
  }
  expect_error(ErrorCode::unsupported,
               {"a-00002-of-00004.h5 and 1 more", "all files of one dataset: ", "a-*-of-00004.h5"},
               [&] { (void)Dataset::open(parts); });
}

TEST_F(DatasetTest, AFileOfTheSameSizeWasChangedAtATimeThatIsNamed) {
  const std::string path = own_file();
  const auto opened_at = std::chrono::file_clock::from_sys(std::chrono::sys_seconds{});
  std::filesystem::last_write_time(path, opened_at);
  const Dataset dataset = Dataset::open(path);
  std::filesystem::last_write_time(path, opened_at + std::chrono::milliseconds(1500));
  expect_error(ErrorCode::corrupt_data,
               {"written to at 1970-01-01 00:00:01.500000000 UTC",
                "last changed at 1970-01-01 00:00:00.000000000 UTC when it was opened"},
               [&] { dataset.impl()->check_unchanged(); });
}

TEST_F(DatasetTest, ReadsEverythingAFileOfThisLibrarySays) {
  const std::string path = own_file();
  const Dataset dataset = Dataset::open(path);
  const DatasetInfo& info = dataset.info();
  EXPECT_EQ(info.path, path);
  EXPECT_EQ(info.images_path, "images");
  EXPECT_EQ(info.num_samples, 20);
  EXPECT_EQ(info.sample_shape(), (Shape{6, 5, 3}));
  EXPECT_EQ(info.layout, Layout::nhwc);
  EXPECT_TRUE(info.stored.chunked);
  EXPECT_EQ(info.stored.chunk_shape, (Shape{8, 6, 5, 3}));
  EXPECT_TRUE(info.stored.filters.empty());
  EXPECT_EQ(info.num_chunks, 3);
  EXPECT_EQ(info.stored_bytes, 3 * 8 * 90);
  ASSERT_TRUE(info.labels);
  EXPECT_EQ(info.labels->dtype, DType::int64);
  ASSERT_EQ(info.fields.size(), 1U);
  EXPECT_EQ(info.fields[0].name, "source_index");
  EXPECT_EQ(info.format_version, 2);
  EXPECT_TRUE(info.creator.starts_with("chunkio "));
  EXPECT_EQ(info.uuid.size(), 36U);
  EXPECT_EQ(info.split, "train");
  EXPECT_EQ(info.order, "shuffled");
  EXPECT_EQ(info.seed, 0xfedcba9876543210U);
  EXPECT_EQ(info.options_json, R"({"source":"folder"})");
  EXPECT_EQ(info.channel_order, "RGB");
  EXPECT_EQ(info.class_names[2], "schn\xc3\xbcrle");
  EXPECT_TRUE(info.attribute_names.empty());
  EXPECT_EQ(info.class_counts, (std::vector<std::int64_t>{7, 7, 6}));
  ASSERT_TRUE(info.statistics);
  EXPECT_EQ(info.statistics->mean, (std::vector<double>{0.25, 0.5, 0.75}));
  EXPECT_EQ(info.statistics->std, (std::vector<double>{0.1, 0.2, 0.3}));
  EXPECT_EQ(info.digests_cover, (std::vector<std::string>{"images", "labels", "source_index"}));
  EXPECT_TRUE(info.chunk_digests.empty());
  EXPECT_TRUE(dataset.impl()->images->linear_offset);
  expect_pattern(dataset);
}

TEST_F(DatasetTest, TwoOpensOfOneFileAreIndependent) {
  const std::string path = own_file();
  std::optional<Dataset> first = Dataset::open(path);
  const Dataset second = Dataset::open(path);
  first.reset();
  expect_pattern(second);
}

// ---- Third-party files ----

TEST_F(DatasetTest, ContiguousDataIsOneRun) {
  const Dataset dataset = Dataset::open(h5py_file(folder_, "contiguous"));
  EXPECT_FALSE(dataset.info().stored.chunked);
  EXPECT_EQ(dataset.info().num_chunks, 0);
  EXPECT_FALSE(dataset.info().format_version);
  EXPECT_TRUE(dataset.info().class_names.empty());
  EXPECT_TRUE(dataset.impl()->images->linear_offset);
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
  EXPECT_FALSE(dataset.impl()->images->whole_rows());
  EXPECT_EQ(dataset.impl()->images->needs_libhdf5, "");
  EXPECT_GE(dataset.impl()->images->chunk_cache_bytes, 2 * 2 * 100 * 3 * 217 * 178);
  ASSERT_TRUE(info.labels);
  EXPECT_EQ(read_labels(dataset)[129], 129 % 7);
  expect_pattern(dataset);
}

TEST_F(DatasetTest, FiltersAreNamedInOrder) {
  const Dataset dataset = Dataset::open(h5py_file(folder_, "deflate"));
  EXPECT_EQ(dataset.info().stored.filters, (std::vector<std::string>{"shuffle", "deflate"}));
  EXPECT_EQ(dataset.impl()->images->needs_libhdf5, "");
  EXPECT_FALSE(dataset.impl()->images->linear_offset);
  EXPECT_LT(dataset.info().stored_bytes, 40 * 8 * 8 * 3);
  expect_pattern(dataset);
  expect_pattern(Dataset::open(h5py_file(folder_, "fletcher")));
}

TEST_F(DatasetTest, LzfIsReadWithoutAFilterOfLibhdf5) {
  const Dataset dataset = Dataset::open(h5py_file(folder_, "lzf"));
  EXPECT_EQ(dataset.info().stored.filters, (std::vector<std::string>{"shuffle", "lzf"}));
  EXPECT_EQ(dataset.impl()->images->needs_libhdf5, "");
  expect_pattern(dataset);
  for (const char* name : {"lzf_masked", "lzf_odd_chunks", "lzf_large", "lzf_user_block"}) {
    SCOPED_TRACE(name);
    expect_pattern(Dataset::open(h5py_file(folder_, name)));
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
  EXPECT_FALSE(dataset.impl()->images->linear_offset);
  EXPECT_EQ(dataset.impl()->images->chunk_cache_bytes, 0);
  expect_pattern(dataset);
  expect_pattern(Dataset::open(h5py_file(folder_, "one_chunk")));
}

TEST_F(DatasetTest, TheOnlyImageDatasetIsFoundAnywhere) {
  const Dataset gray = Dataset::open(h5py_file(folder_, "gray"));
  EXPECT_EQ(gray.info().images_path, "x");
  EXPECT_EQ(gray.info().layout, Layout::nhwc);
  EXPECT_EQ(gray.info().channels, 1);
  EXPECT_EQ(gray.info().width, 9);
  expect_pattern(gray);
  const Dataset loop = Dataset::open(h5py_file(folder_, "group_loop"));
  EXPECT_EQ(loop.info().images_path, "a/x");
}

TEST_F(DatasetTest, EveryParallelNumericDatasetIsAField) {
  const Dataset dataset = Dataset::open(h5py_file(folder_, "fields"));
  const DatasetInfo& info = dataset.info();
  EXPECT_EQ(info.images_path, "data/again") << "two hard links: the first name counts";
  ASSERT_TRUE(info.labels);
  EXPECT_EQ(info.labels->name, "label");
  EXPECT_EQ(read_labels(dataset)[3], 1) << "big-endian uint16 in the file";
  ASSERT_EQ(info.fields.size(), 2U);
  EXPECT_EQ(info.fields[0].name, "meta/box");
  EXPECT_EQ(info.fields[0].row_shape, (Shape{4}));
  EXPECT_EQ(info.fields[1].name, "meta/id");
  EXPECT_EQ(Dataset::row_bytes(info.fields[0]), 16U);
  std::vector<float> box(8);
  dataset.read_field("meta/box", 10, 2, std::as_writable_bytes(std::span(box)));
  EXPECT_EQ(box[7], 47.0F);
  EXPECT_FALSE(dataset.find_field("meta/name"));
  EXPECT_FALSE(dataset.find_field("other"));
}

TEST_F(DatasetTest, AttributeTablesStayAsTheyAre) {
  const Dataset dataset = Dataset::open(h5py_file(folder_, "attribute_table"));
  EXPECT_EQ(dataset.info().layout, Layout::nchw);
  ASSERT_TRUE(dataset.info().labels);
  EXPECT_EQ(dataset.info().labels->dtype, DType::uint8);
  EXPECT_EQ(dataset.info().labels->row_shape, (Shape{4}));
}

TEST_F(DatasetTest, AColumnOfIntegersIsLabels) {
  const std::vector<std::int64_t> expected = {0, 1, 2, 3, 4, 5, 6, 0, 1};
  for (const char* name : {"label_column_uint8", "label_column_int32"}) {
    SCOPED_TRACE(name);
    const Dataset dataset = Dataset::open(h5py_file(folder_, name));
    ASSERT_TRUE(dataset.info().labels);
    EXPECT_EQ(dataset.info().labels->dtype, DType::int64);
    EXPECT_EQ(dataset.info().labels->row_shape, Shape{});
    EXPECT_EQ(dataset.info().why_no_labels, "");
    EXPECT_EQ(read_labels(dataset), expected);
    std::int64_t label = -1;
    dataset.read_field("labels", 5, 1, std::as_writable_bytes(std::span(&label, 1)));
    EXPECT_EQ(label, 5);
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

TEST_F(DatasetTest, LabelsThatAreNotTakenSayWhy) {
  struct Case {
    const char* name;
    std::vector<const char*> parts;
  };
  const std::vector<Case> cases = {
      {"label_float",
       {"labels float32 [9] cannot be labels of 9 images", "[9] or [9,1], or uint8 [9,A]"}},
      {"label_string", {"labels string [9] cannot be labels"}},
      {"label_rows",
       {"labels int64 [8] cannot be labels of 9 images", "y_train int64 [9] looks like labels",
        "labels = \"y_train\""}},
      {"label_one_hot", {"labels int32 [9,9] cannot be labels"}},
      {"label_group",
       {"labels, which is no dataset, cannot be labels",
        "labels/coarse int64 [9,1], labels/fine int64 [9] look like labels",
        "labels = \"labels/coarse\""}},
      {"label_likely", {"y_train uint8 [9,1] looks like labels", "labels = \"y_train\""}}};
  for (const auto& [name, parts] : cases) {
    SCOPED_TRACE(name);
    const Dataset dataset = Dataset::open(h5py_file(folder_, name));
    EXPECT_FALSE(dataset.info().labels);
    for (const char* part : parts) {
      EXPECT_NE(dataset.info().why_no_labels.find(part), std::string::npos)
          << dataset.info().why_no_labels;
    }
  }
  EXPECT_EQ(Dataset::open(h5py_file(folder_, "label_unlikely")).info().why_no_labels, "");
  EXPECT_EQ(Dataset::open(h5py_file(folder_, "contiguous")).info().why_no_labels, "");
  EXPECT_EQ(Dataset::open(own_file()).info().why_no_labels, "");
}

TEST_F(DatasetTest, WhatIsNoFieldIsListed) {
  const Dataset likely = Dataset::open(h5py_file(folder_, "label_likely"));
  EXPECT_EQ(likely.info().left_out,
            (std::vector<std::string>{"name string [9]", "y_test int64 [5]"}));
  EXPECT_EQ(Dataset::open(h5py_file(folder_, "label_rows")).info().left_out,
            (std::vector<std::string>{"labels int64 [8]"}));
  EXPECT_TRUE(Dataset::open(own_file()).info().left_out.empty());
}

TEST_F(DatasetTest, LayoutComesFromOptionThenAttributeThenShape) {
  const std::string path = h5py_file(folder_, "layout_attribute");
  EXPECT_EQ(Dataset::open(path).info().layout, Layout::nchw);
  OpenOptions options;
  options.layout = Layout::nhwc;
  const Dataset dataset = Dataset::open(path, options);
  EXPECT_EQ(dataset.info().layout, Layout::nhwc);
  EXPECT_EQ(dataset.info().height, 3);
  EXPECT_EQ(Dataset::open(h5py_file(folder_, "nchw")).info().layout, Layout::nchw);
  for (const char* name : {"ambiguous", "no_channel_axis"}) {
    const std::string ambiguous = h5py_file(folder_, name);
    expect_error(ErrorCode::invalid_argument, {"option layout"}, [&] { Dataset::open(ambiguous); });
    EXPECT_EQ(Dataset::open(ambiguous, options).info().layout, Layout::nhwc);
  }
}

TEST_F(DatasetTest, SeveralCandidatesAreListed) {
  const std::string path = h5py_file(folder_, "two_candidates");
  expect_error(ErrorCode::unsupported, {"test/x uint8 [4,8,8,3], train/x uint8 [5,8,8,3]"},
               [&] { Dataset::open(path); });
  expect_error(ErrorCode::unsupported, {"option images"}, [&] { Dataset::open(path); });
  OpenOptions options;
  options.images = "/test/x";
  EXPECT_EQ(Dataset::open(path, options).info().num_samples, 4);
  options.images = "valid/x";
  expect_error(ErrorCode::not_found, {"valid/x"}, [&] { Dataset::open(path, options); });
  options.images = "test";
  expect_error(ErrorCode::unsupported, {"not a dataset"}, [&] { Dataset::open(path, options); });
  options.images = "test/x/y";
  expect_error(ErrorCode::not_found, {"test/x/y"}, [&] { Dataset::open(path, options); });
}

TEST_F(DatasetTest, NoCandidateListsWhatThereIs) {
  const std::string path = h5py_file(folder_, "no_candidate");
  expect_error(ErrorCode::unsupported,
               {path, "features float32 [5,3,8,8]", "h5pack repack", "scale = 0..1"},
               [&] { Dataset::open(path); });
  const std::string ids = h5py_file(folder_, "no_images");
  expect_error(ErrorCode::unsupported, {ids, "holds no images", "box float32 [5,4], ids int64 [5]"},
               [&] { Dataset::open(ids); });
  OpenOptions options;
  options.images = "features";
  expect_error(ErrorCode::unsupported, {"features float32"}, [&] { Dataset::open(path, options); });
}

TEST_F(DatasetTest, ThreeAxesAreImagesOfOneChannel) {
  for (const char* name : {"gray3", "gray3_chunked", "gray3_three_wide", "gray3_lzf"}) {
    SCOPED_TRACE(name);
    const std::string path = h5py_file(folder_, name);
    const Dataset dataset = Dataset::open(path);
    const DatasetInfo& info = dataset.info();
    const Shape& stored = info.stored.shape;
    ASSERT_EQ(stored.rank(), 3U);
    EXPECT_EQ(info.sample_shape(), (Shape{stored[1], stored[2], 1}));
    EXPECT_EQ(info.layout, Layout::nhwc);
    EXPECT_EQ(info.channels, 1);
    EXPECT_TRUE(info.labels);
    expect_pattern(dataset);
    const Dataset nchw = Dataset::open(path, {.layout = Layout::nchw});
    EXPECT_EQ(nchw.info().sample_shape(), (Shape{1, stored[1], stored[2]}));
    expect_pattern(nchw);
  }
}

TEST_F(DatasetTest, ThreeAxesAreTakenOnlyWhereNothingElseMayBeMeant) {
  EXPECT_EQ(Dataset::open(h5py_file(folder_, "gray3_and_4")).info().images_path, "pictures");
  EXPECT_EQ(Dataset::open(h5py_file(folder_, "gray3_and_4"), {.images = "masks"}).info().channels,
            1);
  EXPECT_EQ(Dataset::open(h5py_file(folder_, "gray3_named")).info().sample_shape(),
            (Shape{8, 9, 1}));
  const std::string several = h5py_file(folder_, "gray3_several");
  expect_error(ErrorCode::unsupported,
               {several, "x_test uint8 [20,8,9], x_train uint8 [40,8,9]", "option images"},
               [&] { Dataset::open(several); });
  EXPECT_EQ(Dataset::open(several, {.images = "x_test"}).size(), 20);
  const std::string masks = h5py_file(folder_, "gray3_beside_floats");
  expect_error(ErrorCode::unsupported, {"masks uint8 [40,8,9], x float32 [40,8,9,3]"},
               [&] { Dataset::open(masks); });
}

TEST_F(DatasetTest, FloatsAreRefusedWithTheWayOut) {
  for (const char* name : {"floats", "floats_and_masks", "floats_gray", "wide_integers"}) {
    SCOPED_TRACE(name);
    const std::string path = h5py_file(folder_, name);
    expect_error(ErrorCode::unsupported,
                 {path, "other numbers than uint8", "h5pack repack", "scale = 0..1"},
                 [&] { Dataset::open(path); });
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
    EXPECT_FALSE(dataset.impl()->images->linear_offset);
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
  expect_error(ErrorCode::invalid_argument, {uint8, "uint8 already"},
               [&] { Dataset::open(uint8, {.scale = scale}); });
  for (const PixelScale& bad :
       {PixelScale{1, 1}, PixelScale{0, std::nan("")}, PixelScale{-1e308, 1e308}}) {
    expect_error(ErrorCode::invalid_argument, {"scale"},
                 [&] { Dataset::open(outside, {.scale = bad}); });
  }
}

TEST_F(DatasetTest, LabelsByNameMustFit) {
  const std::string path = h5py_file(folder_, "fields");
  OpenOptions options;
  options.labels = "meta/id";
  EXPECT_EQ(Dataset::open(path, options).info().labels->name, "meta/id");
  options.labels = "meta/box";
  expect_error(ErrorCode::unsupported, {"meta/box float32 [12,4]"},
               [&] { Dataset::open(path, options); });
  options.labels = "other";
  expect_error(ErrorCode::unsupported, {"other int64 [11]"}, [&] { Dataset::open(path, options); });
  options.labels = "none";
  expect_error(ErrorCode::not_found, {"none"}, [&] { Dataset::open(path, options); });
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
    expect_error(ErrorCode::refused_by_policy, {part}, [&] { Dataset::open(path); });
  }
  const std::string path = h5py_file(folder_, "soft_link_in_path");
  OpenOptions options;
  options.images = "alias/x";
  expect_error(ErrorCode::refused_by_policy, {"alias is a soft link"},
               [&] { Dataset::open(path, options); });
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
  EXPECT_EQ(external.impl()->images->needs_libhdf5, "external storage");
  EXPECT_EQ(test::read_rows(external, 4, 1), std::vector<std::byte>(192, std::byte{'s'}));
  EXPECT_EQ(Dataset::open(h5py_file(folder_, "virtual"), options).impl()->images->needs_libhdf5,
            "virtual dataset");
  options.images = "alias/x";
  expect_pattern(Dataset::open(h5py_file(folder_, "soft_link_in_path"), options));
}

TEST_F(DatasetTest, AllowedLinksThatLeadNowhereAreNoDatasets) {
  OpenOptions options;
  options.allow_external = true;
  const std::string path = h5py_file(folder_, "external_link");
  std::filesystem::remove(path + ".other");
  expect_error(ErrorCode::unsupported, {path}, [&] { Dataset::open(path, options); });
  const std::string loop = h5py_file(folder_, "soft_loop");
  expect_error(ErrorCode::corrupt_data, {loop, "too many links"},
               [&] { Dataset::open(loop, options); });
}

TEST_F(DatasetTest, AUserBlockShiftsEveryPosition) {
  const Dataset dataset = Dataset::open(h5py_file(folder_, "user_block"));
  EXPECT_TRUE(dataset.impl()->images->linear_offset);
  expect_pattern(dataset);
}

TEST_F(DatasetTest, StorageThatWasNeverWrittenGivesTheFillValue) {
  const Dataset dataset = Dataset::open(h5py_file(folder_, "unallocated"));
  EXPECT_EQ(dataset.impl()->images->needs_libhdf5, "storage is not allocated");
  EXPECT_EQ(test::read_rows(dataset, 5, 1), std::vector<std::byte>(192));
  const Dataset chunks = Dataset::open(h5py_file(folder_, "unallocated_chunks"));
  EXPECT_EQ(test::read_rows(chunks, 0, 1), std::vector<std::byte>(192, std::byte{9}));
  EXPECT_EQ(test::read_rows(chunks, 2, 2), test::pattern_rows(2, 2, 192));
  const Dataset shifted = Dataset::open(h5py_file(folder_, "unallocated_behind_user_block"));
  std::int64_t label = 0;
  shifted.read_field("labels", 39, 1, std::as_writable_bytes(std::span(&label, 1)));
  EXPECT_EQ(label, 7);
}

TEST_F(DatasetTest, ImpossibleShapesAreErrors) {
  expect_error(ErrorCode::corrupt_data, {"is empty"},
               [&] { Dataset::open(h5py_file(folder_, "no_samples")); });
  expect_error(ErrorCode::corrupt_data, {"larger than any dataset"},
               [&] { Dataset::open(h5py_file(folder_, "huge_shape")); });
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
  expect_error(ErrorCode::unsupported, {path, "huge", "is larger than any dataset"},
               [&] { Dataset::open(path, options); });
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
  expect_error(ErrorCode::unsupported, {labels, "of labels are too large to decode"},
               [&] { Dataset::open(labels); });
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
    const h5::StoredArray* const now = dataset.impl()->field_in_use.get();
    ASSERT_TRUE(now);
    EXPECT_TRUE(opened == nullptr || now == opened);
    EXPECT_GE(now->chunk_cache_bytes, 200000 * 8);
    opened = now;
  }
  EXPECT_FALSE(dataset.impl()->field_in_use);
  for (std::int64_t row = 0; row < 200000; ++row) {
    ASSERT_EQ(values[static_cast<std::size_t>(row)], row % 7);
  }
}

TEST_F(DatasetTest, DataInsideTheSuperblockIsAnError) {
  const std::string path = h5py_file(folder_, "contiguous");
  const std::array<std::int64_t, 2> place{Dataset::open(path).impl()->images->linear_offset.value(),
                                          40 * 8 * 8 * 3};
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
  expect_error(ErrorCode::corrupt_data, {path, "images begins at byte 8", "superblock"},
               [&] { Dataset::open(path); });
}

TEST_F(DatasetTest, UnknownFiltersAreNamed) {
  const std::string path = h5py_file(folder_, "unknown_filter");
  expect_error(ErrorCode::unsupported, {path, "filter 32001", "hdf5plugin"},
               [&] { Dataset::open(path); });
  try {
    Dataset::open(path);
  } catch (const Error& error) {
    // It drops datasets that it cannot decode, with a warning and exit code 0.
    EXPECT_EQ(std::string(error.what()).find("h5repack"), std::string::npos);
  }
}

// ---- What is not a file to read ----

TEST_F(DatasetTest, FilesThatCannotBeReadAreNamed) {
  expect_error(ErrorCode::not_found, {folder_.file("gone.h5")},
               [&] { Dataset::open(folder_.file("gone.h5")); });
  expect_error(ErrorCode::unsupported, {"is a folder"},
               [&] { Dataset::open(folder_.path().string()); });
  ASSERT_EQ(::mkfifo(folder_.file("fifo").c_str(), 0600), 0);
  expect_error(ErrorCode::unsupported, {"not a regular file"},
               [&] { Dataset::open(folder_.file("fifo")); });
  test::write_bytes(folder_.file("empty.h5"), {});
  expect_error(ErrorCode::corrupt_data, {"is empty"},
               [&] { Dataset::open(folder_.file("empty.h5")); });
  test::write_bytes(folder_.file("text.h5"), std::vector<std::uint8_t>(5000, 'x'));
  expect_error(ErrorCode::corrupt_data, {"is not an HDF5 file"},
               [&] { Dataset::open(folder_.file("text.h5")); });
}

TEST_F(DatasetTest, AFileBeingWrittenSaysSo) {
  const std::string path = own_file();
  const int writer = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::flock(writer, LOCK_EX | LOCK_NB), 0);
  expect_error(ErrorCode::io_failed, {"open for writing"}, [&] { Dataset::open(path); });
  ::close(writer);
  expect_pattern(Dataset::open(path));
}

// ---- Attributes of a damaged file ----

TEST_F(DatasetTest, AttributesThatCannotBeAreNamed) {
  namespace image = h5::image_attribute;
  const auto replace_numbers = [&](const char* name, const std::vector<double>& values) {
    const std::string path = own_file();
    alter(path, [&](hid_t /*file*/, hid_t images) {
      H5Adelete(images, name);
      if (!values.empty()) {
        h5::write_numbers(images, name, std::span<const double>(values), path);
      }
    });
    expect_error(ErrorCode::corrupt_data, {std::string("attribute ") + name + " of images"},
                 [&] { Dataset::open(path); });
  };
  replace_numbers(image::kMean, {0.1, std::nan(""), 0.3});
  replace_numbers(image::kMean, {0.1, 0.2});
  replace_numbers(image::kStd, {0.1, 0.0, 0.3});
  replace_numbers(image::kStd, {0.1, std::numeric_limits<double>::infinity(), 0.3});
  replace_numbers(image::kClassCounts, {1, 2});
  replace_numbers(image::kClassCounts, {1, 2, 100});
  replace_numbers(image::kLayout, {1});
  replace_numbers(image::kClassNames, {1, 2, 3});

  const std::string path = own_file();
  alter(path, [&](hid_t /*file*/, hid_t images) {
    H5Adelete(images, image::kLayout);
    h5::write_text(images, image::kLayout, "cwhn", path);
  });
  expect_error(ErrorCode::corrupt_data, {"attribute layout of images"},
               [&] { Dataset::open(path); });
}

/// A list of classes may be as long as the dataset, and 2^20 in any: what is longer is not read.
TEST_F(DatasetTest, ListsOfClassesAreAsLongAsTheDatasetAtMost) {
  const std::int64_t many = (std::int64_t{1} << 20) + 3;
  for (const std::int64_t num_samples : {std::int64_t{20}, many}) {
    DatasetSpec spec{.num_samples = num_samples, .height = 1, .width = 1, .channels = 1};
    const std::string path = folder_.file("classes.h5");
    DatasetWriter writer(path, spec, {.overwrite = true});
    test::write_pattern(writer, spec);
    writer.close();
    const std::int64_t most = std::max(many - 3, num_samples);
    for (const std::int64_t count : {most, most + 1}) {
      for (const bool names : {false, true}) {
        alter(path, [&](hid_t /*file*/, hid_t images) {
          for (const char* name :
               {h5::image_attribute::kClassCounts, h5::image_attribute::kClassNames}) {
            if (H5Aexists(images, name) > 0) {
              ASSERT_GE(H5Adelete(images, name), 0);
            }
          }
          const auto entries = static_cast<std::size_t>(count);
          if (names) {
            h5::write_texts(images, h5::image_attribute::kClassNames,
                            std::vector<std::string>(entries, "x"), path);
          } else {
            h5::write_numbers(images, h5::image_attribute::kClassCounts,
                              std::span<const std::int64_t>(std::vector<std::int64_t>(entries)),
                              path);
          }
        });
        if (count > most) {
          expect_error(
              ErrorCode::corrupt_data,
              {names ? "attribute class_names of images" : "attribute class_counts of images",
               "entries"},
              [&] { Dataset::open(path); });
        } else {
          const DatasetInfo info = Dataset::open(path).info();
          EXPECT_EQ(std::ssize(info.class_names), names ? count : 0);
          EXPECT_EQ(std::ssize(info.class_counts), names ? 0 : count);
        }
      }
    }
  }
}

TEST_F(DatasetTest, LayoutOptionCannotContradictOwnFile) {
  const std::string path = own_file();
  OpenOptions options;
  options.layout = Layout::nhwc;
  EXPECT_EQ(Dataset::open(path, options).info().layout, Layout::nhwc);
  options.layout = Layout::nchw;
  expect_error(ErrorCode::invalid_argument, {"option layout"},
               [&] { Dataset::open(path, options); });
}

TEST_F(DatasetTest, UnwrittenLabelsAreNotRead) {
  const std::string path = own_file();
  alter(path, [&](hid_t file, hid_t /*images*/) {
    ASSERT_GE(H5Ldelete(file, "labels", H5P_DEFAULT), 0);
    const hsize_t dim = 20;
    const h5::SpaceId space(H5Screate_simple(1, &dim, nullptr));
    // Late allocation: no label is in the file.
    const h5::DatasetId labels(H5Dcreate2(file, "labels", H5T_NATIVE_INT64, space.get(),
                                          H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    ASSERT_TRUE(labels);
  });
  expect_error(ErrorCode::corrupt_data, {"labels lacks"}, [&] { Dataset::open(path); });
}

TEST_F(DatasetTest, LabelsOutsideTheClassesAreDamage) {
  const std::string path = own_file();
  alter(path, [&](hid_t file, hid_t /*images*/) {
    const h5::DatasetId labels(H5Dopen2(file, "labels", H5P_DEFAULT));
    std::vector<std::int64_t> values(20, 0);
    values[13] = 3;
    ASSERT_GE(
        H5Dwrite(labels.get(), H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
  });
  expect_error(ErrorCode::corrupt_data, {"label 3 of sample 13"}, [&] { Dataset::open(path); });
}

TEST_F(DatasetTest, LaterFormatVersionsAreDeclined) {
  const std::string path = own_file();
  alter(path, [&](hid_t file, hid_t /*images*/) {
    H5Adelete(file, h5::root_attribute::kFormat);
    h5::write_number(file, h5::root_attribute::kFormat, std::int64_t{3}, path);
  });
  expect_error(ErrorCode::unsupported, {"format version 3"}, [&] { Dataset::open(path); });
}

// ---- Reads ----

TEST_F(DatasetTest, ReadsOutsideTheRowsAreErrors) {
  const Dataset dataset = Dataset::open(own_file());
  std::vector<std::byte> rows(90);
  expect_error(ErrorCode::invalid_argument, {"20 rows"}, [&] { dataset.read_images(20, 1, rows); });
  expect_error(ErrorCode::invalid_argument, {"20 rows"}, [&] { dataset.read_images(-1, 1, rows); });
  expect_error(ErrorCode::invalid_argument, {"20 rows"},
               [&] { dataset.read_images(1, std::numeric_limits<std::int64_t>::max(), rows); });
  expect_error(ErrorCode::invalid_argument, {"buffer"}, [&] { dataset.read_images(0, 2, rows); });
  expect_error(ErrorCode::not_found, {"no field x"}, [&] { dataset.read_field("x", 0, 1, rows); });
}

}  // namespace
}  // namespace chunkio
