#include "h5pack/sources/celeba_source.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/source_files.hpp"

namespace h5pack {
namespace {

namespace fs = std::filesystem;

class CelebaSource : public SourceTest {
 protected:
  CelebaSource() {
    for (const char* name : {"000001.jpg", "000002.jpg", "000003.jpg"}) {
      write_text(images() / name, "x");
    }
    // Rows in another order than the files: they are joined by name.
    write("list_attr_celeba.txt",
          "3\nBald Smiling \n000003.jpg  1  1\n000001.jpg -1  1\n000002.jpg  1 -1\n");
  }
  [[nodiscard]] fs::path images() const { return scratch_.path() / "img_align_celeba"; }
  void write(const std::string& name, const std::string& text) {
    write_text(scratch_.path() / name, text);
  }
  [[nodiscard]] Listing list() const { return list_celeba(root()); }
  void expect_failure(ErrorCode code, const std::vector<std::string>& parts) const {
    expect_error(code, parts, [&] { (void)list(); });
  }
};

TEST_F(CelebaSource, AttributesAreJoinedByNameAndWithoutPartitionAllIsTrain) {
  const Listing listing = list();
  EXPECT_TRUE(listing.output_is_folder);
  EXPECT_EQ(listing.attribute_names, (Names{"Bald", "Smiling"}));
  ASSERT_EQ(listing.splits.size(), 1U);
  EXPECT_EQ(listing.splits[0].name, "train");
  EXPECT_EQ(field_values<std::uint8_t>(listing.splits[0], "labels"),
            (std::vector<std::uint8_t>{0, 1, 1, 0, 1, 1}));
  EXPECT_EQ(find_field(listing.splits[0].fields, "labels")->info.row_shape, chunkio::Shape{2});
  ASSERT_EQ(listing.notes.size(), 1U);
  EXPECT_NE(listing.notes[0].find("train.h5"), std::string::npos);
}

TEST_F(CelebaSource, PartitionIdentityAndLandmarksAreUsedIfPresent) {
  write("list_eval_partition.txt", "000001.jpg 2\r\n000002.jpg 0\r\n000003.jpg 0\r\n");
  write("identity_CelebA.txt", "000002.jpg 22\n000003.jpg 33\n000001.jpg 11\n");
  write("list_landmarks_align_celeba.txt",
        "3\nlefteye_x lefteye_y\n000001.jpg 1 -2\n000002.jpg 3 4\n000003.jpg 5 6\n");
  const Listing listing = list();
  ASSERT_EQ(listing.splits.size(), 2U);
  EXPECT_EQ(listing.splits[0].name, "train");
  EXPECT_EQ(listing.splits[1].name, "test");
  EXPECT_EQ(relative_paths(listing.splits[0], images().string()),
            (Names{"000002.jpg", "000003.jpg"}));
  EXPECT_EQ(field_values<std::int64_t>(listing.splits[0], "identity"),
            (std::vector<std::int64_t>{22, 33}));
  EXPECT_EQ(field_values<std::int32_t>(listing.splits[1], "landmarks"),
            (std::vector<std::int32_t>{1, -2}));
  EXPECT_EQ(field_values<std::uint8_t>(listing.splits[1], "labels"),
            (std::vector<std::uint8_t>{0, 1}));
  EXPECT_EQ(listing.source["landmark_names"].size(), 2U);
  EXPECT_TRUE(listing.notes.empty());
}

TEST_F(CelebaSource, CsvTablesNestedImagesAndTheOriginalFoldersWork) {
  fs::create_directories(images() / "img_align_celeba");
  for (const char* name : {"000001.jpg", "000002.jpg", "000003.jpg"}) {
    fs::rename(images() / name, images() / "img_align_celeba" / name);
  }
  fs::remove(scratch_.path() / "list_attr_celeba.txt");
  write("Anno/list_attr_celeba.csv",
        "image_id,5_o_Clock_Shadow,Bald\n000001.jpg,-1,1\n000002.jpg,1,1\n000003.jpg,-1,-1\n");
  write("Eval/list_eval_partition.csv",
        "image_id,partition\n000001.jpg,1\n000002.jpg,1\n000003.jpg,0\n");
  const Listing listing = list();
  EXPECT_EQ(listing.attribute_names, (Names{"5_o_Clock_Shadow", "Bald"}));
  ASSERT_EQ(listing.splits.size(), 2U);
  EXPECT_EQ(listing.splits[1].name, "val");
  EXPECT_EQ(field_values<std::uint8_t>(listing.splits[1], "labels"),
            (std::vector<std::uint8_t>{0, 1, 1, 1}));
}

TEST_F(CelebaSource, ImagesWithoutRowsAndRowsWithoutImagesAreNamed) {
  write_text(images() / "000004.jpg", "x");
  expect_failure(ErrorCode::not_found, {"list_attr_celeba.txt", "'000004.jpg'"});
  fs::remove(images() / "000004.jpg");
  fs::remove(images() / "000002.jpg");
  expect_failure(ErrorCode::not_found,
                 {"list_attr_celeba.txt", "without an image", "'000002.jpg'"});
}

TEST_F(CelebaSource, OtherTablesMustMatchToo) {
  write("list_eval_partition.txt", "000001.jpg 0\n000002.jpg 0\n");
  expect_failure(ErrorCode::not_found, {"list_eval_partition.txt", "'000003.jpg'"});
}

TEST_F(CelebaSource, DamagedTablesAreLocated) {
  struct Case {
    std::string text;
    std::vector<std::string> parts;
  };
  const std::vector<Case> cases = {
      {"4\nBald Smiling\n000001.jpg 1 1\n000002.jpg 1 1\n000003.jpg 1 1\n",
       {"line 1", "4", "there are 3"}},
      {"many\nBald Smiling\n000001.jpg 1 1\n", {"line 1", "number of rows"}},
      {"3\nBald Smiling\n000001.jpg 1\n", {"line 3", "1 values instead of 2"}},
      {"3\nBald Smiling\n000001.jpg 1 1 1\n", {"line 3", "3 values instead of 2"}},
      {"3\nBald Smiling\n000001.jpg 1 x\n", {"line 3", "'x'"}},
      {"3\nBald Smiling\n000001.jpg 1 99999999999\n", {"line 3", "'99999999999'"}},
      {"3\nBald Smiling\n000001.jpg 1 1\n000001.jpg 1 1\n",
       {"line 4", "repeats '000001.jpg' of line 3"}},
      {"3\nBald Smiling\n000001.jpg 1 1\n000002.jpg 1 0\n000003.jpg 1 1\n",
       {"line 4", "0 is neither"}},
      {"3\n\n", {"line 2"}},
  };
  for (const Case& broken : cases) {
    write("list_attr_celeba.txt", broken.text);
    std::vector<std::string> parts = broken.parts;
    parts.push_back("list_attr_celeba.txt");
    expect_failure(ErrorCode::corrupt_data, parts);
  }
}

TEST_F(CelebaSource, AnUnknownPartitionIsLocated) {
  write("list_eval_partition.txt", "000001.jpg 0\n000002.jpg 3\n000003.jpg 0\n");
  expect_failure(ErrorCode::corrupt_data, {"list_eval_partition.txt", "line 2", "3"});
}

TEST_F(CelebaSource, MissingPartsAreNamed) {
  fs::remove(scratch_.path() / "list_attr_celeba.txt");
  expect_failure(ErrorCode::not_found, {"list_attr_celeba"});
  fs::remove_all(images());
  expect_failure(ErrorCode::not_found, {"img_align_celeba"});
  expect_error(ErrorCode::not_found, {"absent"}, [&] { (void)list_celeba(root() + "/absent"); });
}

}  // namespace
}  // namespace h5pack
