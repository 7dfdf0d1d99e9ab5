#include "h5pack/sources/folder_source.hpp"

#include <sys/stat.h>

#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "support/source_files.hpp"

namespace h5pack {
namespace {

namespace fs = std::filesystem;

class FolderSource : public SourceTest {
 protected:
  void add(const std::string& name) { write_text(scratch_.path() / name, "x"); }
  [[nodiscard]] Listing list() const { return list_folder(root()); }
};

TEST_F(FolderSource, ClassesAreSortedByBytesAndGiveLabels) {
  for (const char* name : {"b/1.jpg", "a/2.png", "B/3.JPEG", "\xC3\xA4/4.bmp", "a/1.WebP"})
    add(name);
  const Listing listing = list();
  EXPECT_FALSE(listing.output_is_folder);
  EXPECT_EQ(listing.class_names, (Names{"B", "a", "b", "\xC3\xA4"}));
  ASSERT_EQ(listing.splits.size(), 1U);
  EXPECT_EQ(relative_paths(listing.splits[0], root()),
            (Names{"B/3.JPEG", "a/1.WebP", "a/2.png", "b/1.jpg", "\xC3\xA4/4.bmp"}));
  EXPECT_EQ(field_values<std::int64_t>(listing.splits[0], "labels"), (Labels{0, 1, 1, 2, 3}));
  EXPECT_TRUE(listing.notes.empty());
}

TEST_F(FolderSource, OnlyTheListedExtensionsCount) {
  for (const char* extension : {"jpg", "jpeg", "png", "ppm", "bmp", "pgm", "tif", "tiff", "webp"}) {
    add(std::string("a/x.") + extension);
  }
  for (const char* name : {"a/x.gif", "a/x.txt", "a/jpg", "a/x.jpg.bak", "a/Thumbs.db"}) add(name);
  EXPECT_EQ(list().splits[0].images->count(), 9);
}

TEST_F(FolderSource, NestedFilesBelongToTheTopClassInTheOrderOfOsWalk) {
  for (const char* name : {"a/z.jpg", "a/s/1.jpg", "a/s-t/1.jpg", "a/s/u/0.jpg", "b/1.jpg"})
    add(name);
  const Listing listing = list();
  EXPECT_EQ(listing.class_names, (Names{"a", "b"}));
  // Sorted by folder path, in which '-' comes before '/'.
  EXPECT_EQ(relative_paths(listing.splits[0], root()),
            (Names{"a/z.jpg", "a/s/1.jpg", "a/s-t/1.jpg", "a/s/u/0.jpg", "b/1.jpg"}));
  EXPECT_EQ(field_values<std::int64_t>(listing.splits[0], "labels"), (Labels{0, 0, 0, 0, 1}));
}

TEST_F(FolderSource, OnlyImagesGiveNoLabels) {
  for (const char* name : {"2.jpg", "10.jpg", "notes.txt"}) add(name);
  const Listing listing = list();
  EXPECT_TRUE(listing.class_names.empty());
  EXPECT_EQ(relative_paths(listing.splits[0], root()), (Names{"10.jpg", "2.jpg"}));
  EXPECT_TRUE(listing.splits[0].fields.empty());
}

TEST_F(FolderSource, SplitsShareTheUnionOfTheirClasses) {
  for (const char* name :
       {"train/b/1.jpg", "train/a/1.jpg", "test/b/1.jpg", "test/c/1.jpg", "extra/d/1.jpg"}) {
    add(name);
  }
  fs::create_directories(scratch_.path() / "test" / "a");  // Empty here, but not in train.
  const Listing listing = list();
  EXPECT_TRUE(listing.output_is_folder);
  EXPECT_EQ(listing.class_names, (Names{"a", "b", "c"}));
  ASSERT_EQ(listing.splits.size(), 2U);
  EXPECT_EQ(listing.splits[0].name, "train");
  EXPECT_EQ(listing.splits[1].name, "test");
  EXPECT_EQ(field_values<std::int64_t>(listing.splits[0], "labels"), (Labels{0, 1}));
  EXPECT_EQ(field_values<std::int64_t>(listing.splits[1], "labels"), (Labels{1, 2}));
  EXPECT_EQ(listing.notes.size(), 1U);  // extra/ is left out.
}

TEST_F(FolderSource, ASplitWithImagesOnlyHasNoLabels) {
  for (const char* name : {"train/a/1.jpg", "test/1.jpg"}) add(name);
  const Listing listing = list();
  EXPECT_EQ(field_values<std::int64_t>(listing.splits[0], "labels"), (Labels{0}));
  EXPECT_EQ(find_field(listing.splits[1].fields, "labels"), nullptr);
}

TEST_F(FolderSource, TrainAloneIsAClassAndThatIsSaid) {
  add("train/a/1.jpg");
  const Listing listing = list();
  EXPECT_FALSE(listing.output_is_folder);
  EXPECT_EQ(listing.class_names, (Names{"train"}));
  EXPECT_EQ(listing.notes.size(), 1U);
}

TEST_F(FolderSource, LinksAreFollowedAndLoopsEnd) {
  add("a/1.jpg");
  add("b/2.jpg");
  chunkio::test::ScratchFolder other;
  write_text(other.path() / "c" / "3.jpg", "x");
  fs::create_directory_symlink(other.path() / "c", scratch_.path() / "c");
  fs::create_directory_symlink(".", scratch_.path() / "a" / "self");
  fs::create_directory_symlink("..", scratch_.path() / "b" / "up");
  fs::create_symlink("1.jpg", scratch_.path() / "a" / "link.jpg");
  const Listing listing = list();
  EXPECT_EQ(relative_paths(listing.splits[0], root()),
            (Names{"a/1.jpg", "a/link.jpg", "b/2.jpg", "c/3.jpg"}));
}

TEST_F(FolderSource, DanglingLinksAreListedLikeImagesThatCannotBeRead) {
  add("a/1.jpg");
  fs::create_symlink("nowhere", scratch_.path() / "a" / "gone.jpg");
  fs::create_symlink("loop.jpg", scratch_.path() / "a" / "loop.jpg");
  EXPECT_EQ(relative_paths(list().splits[0], root()),
            (Names{"a/1.jpg", "a/gone.jpg", "a/loop.jpg"}));
}

TEST_F(FolderSource, PipesAreLeftOutAndCounted) {
  add("a/1.jpg");
  ASSERT_EQ(::mkfifo(scratch_.file("a/pipe.jpg").c_str(), 0600), 0);
  const Listing listing = list();
  EXPECT_EQ(listing.splits[0].images->count(), 1);
  EXPECT_EQ(listing.notes.size(), 1U);
}

TEST_F(FolderSource, StrangeNamesStayAsTheyAre) {
  for (const std::string& name : {std::string("a/-x.jpg"), std::string("a/new\nline.jpg"),
                                  "a/" + std::string(250, 'y') + ".jpg",
                                  std::string("a/\xFF\xFE.jpg"), std::string("A/x.jpg")}) {
    add(name);
  }
  const Listing listing = list();
  EXPECT_EQ(listing.class_names, (Names{"A", "a"}));
  EXPECT_EQ(relative_paths(listing.splits[0], root())[2], "a/new\nline.jpg");
  EXPECT_EQ(listing.splits[0].images->count(), 5);
}

TEST_F(FolderSource, EmptyFoldersAndClassesAreErrors) {
  expect_error(ErrorCode::not_found, {root(), "no images"}, [&] { (void)list(); });
  add("a/1.jpg");
  fs::create_directories(scratch_.path() / "empty");
  expect_error(ErrorCode::not_found, {"class folder 'empty'"}, [&] { (void)list(); });
  fs::remove_all(scratch_.path() / "a");
  expect_error(ErrorCode::not_found, {root(), "no images"}, [&] { (void)list(); });
}

TEST_F(FolderSource, MissingFoldersAndFilesAreErrors) {
  expect_error(ErrorCode::not_found, {"absent"}, [&] { (void)list_folder(root() + "/absent"); });
  add("file.txt");
  expect_error(ErrorCode::not_found, {"file.txt", "not a folder"},
               [&] { (void)list_folder(root() + "/file.txt"); });
}

}  // namespace
}  // namespace h5pack
