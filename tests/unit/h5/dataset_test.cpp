// What a dataset says of itself, and how its images, labels and fields are found.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <hdf5.h>

#include "base/access.hpp"
#include "h5/attributes.hpp"
#include "h5/error_stack.hpp"
#include "h5/library.hpp"
#include "h5/schema.hpp"
#include "support/dataset_fixture.hpp"

namespace chunkio {
namespace {

using test::DatasetTest;
using test::expect_error;
using test::h5py_file;

TEST_F(DatasetTest, AFolderNamesTheFilesInIt) {
  const std::string folder = folder_.file("");
  refused(ErrorCode::unsupported, {"is a folder", "give the path of an HDF5 file"}, folder);
  own_file();
  refused(ErrorCode::unsupported, {"is a folder", "open one of its files", "own.h5"}, folder);
  const std::string parts = folder_.file("parts");
  std::filesystem::create_directory(parts);
  for (const char* const number : {"00000", "00001", "00002", "00003"}) {
    test::write_bytes(parts + "/a-" + number + "-of-00004.h5", {});
  }
  refused(ErrorCode::unsupported,
          {"a-00002-of-00004.h5 and 1 more", "all files of one dataset: ", "a-*-of-00004.h5"},
          parts);
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
               [&] { internal::Access::impl(dataset)->check_unchanged(); });
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
  EXPECT_TRUE(internal::Access::impl(dataset)->leading->linear_offset);
  expect_pattern(dataset);
}

TEST_F(DatasetTest, TwoOpensOfOneFileAreIndependent) {
  const std::string path = own_file();
  std::optional<Dataset> first = Dataset::open(path);
  const Dataset second = Dataset::open(path);
  first.reset();
  expect_pattern(second);
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

TEST_F(DatasetTest, LabelsThatAreNotTakenSayWhy) {
  struct Case {
    const char* name;
    std::vector<const char*> parts;
  };
  const std::vector<Case> cases = {
      {"label_float",
       {"labels float32 [9] cannot be labels of 9 samples", "[9] or [9,1], or uint8 [9,A]"}},
      {"label_string", {"labels string [9] cannot be labels"}},
      {"label_rows",
       {"labels int64 [8] cannot be labels of 9 samples", "y_train int64 [9] looks like labels",
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
    refused(ErrorCode::invalid_argument, {"option layout"}, ambiguous);
    EXPECT_EQ(Dataset::open(ambiguous, options).info().layout, Layout::nhwc);
  }
}

TEST_F(DatasetTest, SeveralCandidatesAreListed) {
  const std::string path = h5py_file(folder_, "two_candidates");
  refused(ErrorCode::unsupported, {"test/x uint8 [4,8,8,3], train/x uint8 [5,8,8,3]"}, path);
  refused(ErrorCode::unsupported, {"option images"}, path);
  OpenOptions options;
  options.images = "/test/x";
  EXPECT_EQ(Dataset::open(path, options).info().num_samples, 4);
  options.images = "valid/x";
  refused(ErrorCode::not_found, {"valid/x"}, path, options);
  options.images = "test";
  refused(ErrorCode::unsupported, {"not a dataset"}, path, options);
  options.images = "test/x/y";
  refused(ErrorCode::not_found, {"test/x/y"}, path, options);
}

TEST_F(DatasetTest, NoCandidateListsWhatThereIs) {
  const std::string path = h5py_file(folder_, "no_arrays");
  refused(ErrorCode::unsupported,
          {path, "holds no images", "no other numbers", "ids int64 [5], name string [5]"}, path);
  EXPECT_EQ(Dataset::open(path, {.images = "ids"}).size(), 5);
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
  refused(ErrorCode::unsupported,
          {several, "x_test uint8 [20,8,9], x_train uint8 [40,8,9]", "option images"}, several);
  EXPECT_EQ(Dataset::open(several, {.images = "x_test"}).size(), 20);
  const std::string masks = h5py_file(folder_, "gray3_beside_floats");
  refused(ErrorCode::unsupported, {"masks uint8 [40,8,9], x float32 [40,8,9,3]"}, masks);
}

TEST_F(DatasetTest, LabelsByNameMustFit) {
  const std::string path = h5py_file(folder_, "fields");
  OpenOptions options;
  options.labels = "meta/id";
  EXPECT_EQ(Dataset::open(path, options).info().labels->name, "meta/id");
  options.labels = "meta/box";
  refused(ErrorCode::unsupported, {"meta/box float32 [12,4]"}, path, options);
  options.labels = "other";
  refused(ErrorCode::unsupported, {"other int64 [11]"}, path, options);
  options.labels = "none";
  refused(ErrorCode::not_found, {"none"}, path, options);
}

TEST_F(DatasetTest, FilesThatCannotBeReadAreNamed) {
  refused(ErrorCode::not_found, {folder_.file("gone.h5")}, folder_.file("gone.h5"));
  ASSERT_EQ(::mkfifo(folder_.file("fifo").c_str(), 0600), 0);
  refused(ErrorCode::unsupported, {"not a regular file"}, folder_.file("fifo"));
  test::write_bytes(folder_.file("empty.h5"), {});
  refused(ErrorCode::corrupt_data, {"is empty"}, folder_.file("empty.h5"));
  test::write_bytes(folder_.file("text.h5"), std::vector<std::uint8_t>(5000, 'x'));
  refused(ErrorCode::corrupt_data, {"is not an HDF5 file"}, folder_.file("text.h5"));
}

TEST_F(DatasetTest, AFileBeingWrittenSaysSo) {
  const std::string path = own_file();
  const int writer = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::flock(writer, LOCK_EX | LOCK_NB), 0);
  refused(ErrorCode::io_failed, {"open for writing"}, path);
  ::close(writer);
  expect_pattern(Dataset::open(path));
}

/// Lets `change` replace things in the file `path`.
template <class Change>
void alter(const std::string& path, Change change) {
  const auto guard = h5::Library::lock();
  h5::FileId file(h5::check_id(H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), "open", path));
  h5::DatasetId images(h5::check_id(H5Dopen2(file.get(), "images", H5P_DEFAULT), "open", path));
  change(file.get(), images.get());
}

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
    refused(ErrorCode::corrupt_data, {std::string("attribute ") + name + " of images"}, path);
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
  refused(ErrorCode::corrupt_data, {"attribute layout of images"}, path);
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
  refused(ErrorCode::invalid_argument, {"option layout"}, path, options);
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
  refused(ErrorCode::corrupt_data, {"labels lacks"}, path);
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
  refused(ErrorCode::corrupt_data, {"label 3 of sample 13"}, path);
}

TEST_F(DatasetTest, LaterFormatVersionsAreDeclined) {
  const std::string path = own_file();
  alter(path, [&](hid_t file, hid_t /*images*/) {
    H5Adelete(file, h5::root_attribute::kFormat);
    h5::write_number(file, h5::root_attribute::kFormat, std::int64_t{3}, path);
  });
  refused(ErrorCode::unsupported, {"format version 3"}, path);
}

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
