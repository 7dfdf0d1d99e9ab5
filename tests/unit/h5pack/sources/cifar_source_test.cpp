#include "h5pack/sources/cifar_source.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "h5pack/sources/planar_images.hpp"
#include "support/source_files.hpp"

namespace h5pack {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPixels = 3072;

/// A record whose pixels all have the value `pixel`.
std::string record(const std::vector<int>& labels, int pixel) {
  std::string bytes;
  for (const int label : labels) bytes += static_cast<char>(label);
  return bytes + std::string(kPixels, static_cast<char>(pixel));
}

std::string numbered_lines(int count) {
  std::string lines;
  for (int i = 0; i < count; ++i) lines += "name" + std::to_string(i) + "\n";
  return lines + "\n";
}

class CifarSource : public SourceTest {
 protected:
  void write_cifar10(const fs::path& folder) {
    for (int batch = 1; batch <= 5; ++batch) {
      write_text(folder / ("data_batch_" + std::to_string(batch) + ".bin"),
                 record({batch}, 10 * batch) + record({9}, 10 * batch + 1));
    }
    write_text(folder / "test_batch.bin", record({0}, 100) + record({1}, 101));
    write_text(folder / "batches.meta.txt", numbered_lines(10));
  }
  void write_cifar100(const fs::path& folder) {
    std::string train;
    for (int i = 0; i < 5; ++i) train += record({19, 99 - i}, i);
    write_text(folder / "train.bin", train);
    write_text(folder / "test.bin", record({3, 4}, 200));
    write_text(folder / "fine_label_names.txt", numbered_lines(100));
    write_text(folder / "coarse_label_names.txt", numbered_lines(20));
  }
  void expect_failure(ErrorCode code, const std::vector<std::string>& parts) const {
    expect_error(code, parts, [&] { (void)list_cifar(root()); });
  }
};

TEST_F(CifarSource, Cifar10HasTwoSplitsInBatchOrder) {
  write_cifar10(scratch_.path());
  const Listing listing = list_cifar(root());
  EXPECT_TRUE(listing.output_is_folder);
  ASSERT_EQ(listing.class_names.size(), 10U);
  EXPECT_EQ(listing.class_names[9], "name9");
  ASSERT_EQ(listing.splits.size(), 2U);
  EXPECT_EQ(listing.splits[0].name, "train");
  EXPECT_EQ(listing.splits[1].name, "test");
  EXPECT_EQ(field_values<std::int64_t>(listing.splits[0], "labels"),
            (Labels{1, 9, 2, 9, 3, 9, 4, 9, 5, 9}));
  EXPECT_EQ(field_values<std::int64_t>(listing.splits[1], "labels"), (Labels{0, 1}));
  const auto& images = dynamic_cast<const PlanarImages&>(*listing.splits[0].images);
  ASSERT_EQ(images.count(), 10);
  std::vector<std::uint8_t> pixels(kPixels);
  for (std::int64_t i = 0; i < 10; ++i) {
    images.read(i, pixels);
    const auto expected = static_cast<std::uint8_t>(10 * (i / 2 + 1) + i % 2);
    EXPECT_EQ(pixels, std::vector<std::uint8_t>(kPixels, expected)) << i;
  }
  EXPECT_EQ(images.name(3), root() + "/data_batch_2.bin, image 1");
}

TEST_F(CifarSource, Cifar100HasFineAndCoarseLabels) {
  write_cifar100(scratch_.path());
  const Listing listing = list_cifar(root());
  EXPECT_EQ(listing.class_names.size(), 100U);
  EXPECT_EQ(field_values<std::int64_t>(listing.splits[0], "labels"), (Labels{99, 98, 97, 96, 95}));
  EXPECT_EQ(field_values<std::int64_t>(listing.splits[0], "coarse_labels"), Labels(5, 19));
  EXPECT_EQ(field_values<std::int64_t>(listing.splits[1], "labels"), (Labels{4}));
  EXPECT_EQ(listing.source["coarse_class_names"].size(), 20U);
}

TEST_F(CifarSource, TheArchivesFolderIsFound) {
  write_cifar10(scratch_.path() / "cifar-10-batches-bin");
  EXPECT_EQ(list_cifar(root()).splits.size(), 2U);
  write_cifar100(scratch_.path() / "cifar-100-binary");
  expect_failure(ErrorCode::invalid_argument, {root(), "both"});
}

TEST_F(CifarSource, ThePythonVersionIsRecognised) {
  write_text(scratch_.path() / "cifar-10-batches-py" / "data_batch_1", "pickle");
  expect_failure(ErrorCode::not_found, {"Python version", "binary"});
}

TEST_F(CifarSource, MissingFilesAreNamed) {
  expect_failure(ErrorCode::not_found, {root(), "data_batch_1.bin"});
  expect_error(ErrorCode::not_found, {"absent"}, [&] { (void)list_cifar(root() + "/absent"); });
  for (const char* name : {"data_batch_3.bin", "test_batch.bin", "batches.meta.txt"}) {
    write_cifar10(scratch_.path());
    fs::remove(scratch_.path() / name);
    expect_failure(ErrorCode::not_found, {name});
  }
}

TEST_F(CifarSource, LengthsAreCheckedToTheByte) {
  for (const char* name : {"data_batch_4.bin", "test_batch.bin"}) {
    for (const std::uintmax_t size : {1U, 3072U, 3074U, 6145U, 6147U}) {
      write_cifar10(scratch_.path());
      fs::resize_file(scratch_.path() / name, size);
      expect_failure(ErrorCode::corrupt_data, {name, std::to_string(size)});
    }
    // Cut at the end of a record: only the other batches tell.
    write_cifar10(scratch_.path());
    fs::resize_file(scratch_.path() / name, 3073);
    expect_failure(ErrorCode::corrupt_data, {root(), "unpack"});
    write_cifar10(scratch_.path());
  }
}

TEST_F(CifarSource, Cifar100CutAtARecordIsNoticed) {
  write_cifar100(scratch_.path());
  fs::resize_file(scratch_.path() / "train.bin", 4 * 3074);
  expect_failure(ErrorCode::corrupt_data, {"4 training"});
}

TEST_F(CifarSource, LabelsOutOfRangeAreLocated) {
  write_cifar10(scratch_.path());
  write_text(scratch_.path() / "data_batch_2.bin", record({1}, 0) + record({10}, 0));
  expect_failure(ErrorCode::corrupt_data, {"data_batch_2.bin", "label 10", "byte 3073"});

  chunkio::test::ScratchFolder other;
  write_cifar100(other.path());
  write_text(other.path() / "test.bin", record({20, 0}, 0));
  expect_error(ErrorCode::corrupt_data, {"test.bin", "label 20", "byte 0"},
               [&] { (void)list_cifar(other.path().string()); });
}

TEST_F(CifarSource, WrongNumberOfClassNamesIsAnError) {
  write_cifar10(scratch_.path());
  write_text(scratch_.path() / "batches.meta.txt", numbered_lines(9));
  expect_failure(ErrorCode::corrupt_data, {"batches.meta.txt", "9"});
}

}  // namespace
}  // namespace h5pack
