// Files that link the shards of a dataset.
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <hdf5.h>

#include "h5/handle.hpp"
#include "support/errors.hpp"
#include "support/shard_fixture.hpp"

namespace chunkio {
namespace {

namespace fs = std::filesystem;
using test::expect_error;
using test::kUneven;
using test::kWhole;
using test::rows_of;
using test::ShardsTest;
using test::sum;

class ShardLinkTest : public ShardsTest {
 protected:
  /// Removes the attribute by which the library knows the links that it wrote.
  static void as_written_by_others(const std::string& link) {
    const h5::FileId file(H5Fopen(link.c_str(), H5F_ACC_RDWR, H5P_DEFAULT));
    ASSERT_GE(H5Adelete(file.get(), "shard_pattern"), 0);
  }
};

TEST_F(ShardLinkTest, IsReadByOthersWhereverTheFolderIs) {
  const std::string pattern = write(kUneven, "100%b train.h5");
  const Dataset dataset = Dataset::open(pattern);
  link_shards(dataset, scratch_.file("all.h5"));
  const fs::path moved = scratch_.path().string() + " moved";
  fs::rename(scratch_.path(), moved);
  const std::string script =
      "import h5py, numpy, sys; f = h5py.File(sys.argv[1]); n = 67; "
      "rows = numpy.arange(n); "
      "assert f['images'].shape == (n, 5, 4, 3) and f['images'].is_virtual; "
      "assert (f['labels'][()] == (rows * 7 + 3) % 10).all(); "
      "assert (f['weights'][()] == numpy.stack([rows, -rows], 1)).all(); "
      "assert f['images'].attrs['class_names'][4] == b'class 4'; "
      "assert 'shard_index' not in f.attrs and f.attrs['chunkio_format'] == 2; "
      "assert all(not s.file_name.startswith('/') for s in f['images'].virtual_sources()); "
      "f['images'][()].tofile(sys.argv[2])";
  const std::string command = std::string("cd / && '") + CHUNKIO_H5PY_PYTHON + "' -c \"" + script +
                              "\" '" + (moved / "all.h5").string() + "' '" +
                              (moved / "pixels").string() + "'";
  EXPECT_EQ(std::system(command.c_str()), 0);
  const auto pixels = test::read_bytes((moved / "pixels").string());
  fs::rename(moved, scratch_.path());
  ASSERT_EQ(std::ssize(pixels), 67 * 60);
  for (std::int64_t row = 0; row < 67; ++row) {
    const auto expected = test::image(row, 60);
    EXPECT_EQ(std::memcmp(pixels.data() + row * 60, expected.data(), expected.size()), 0);
  }
}

TEST_F(ShardLinkTest, NamesThePatternToWhomeverOpensIt) {
  const std::string pattern = write(kUneven);
  const std::string link = scratch_.file("all.h5");
  link_shards(Dataset::open(pattern), link);
  for (const bool allow_external : {false, true}) {
    expect_error(ErrorCode::refused_by_policy, {link, "open '" + pattern + "' instead"},
                 [&] { (void)Dataset::open(link, {.allow_external = allow_external}); });
  }
  as_written_by_others(link);
  const Dataset linked = Dataset::open(link, {.allow_external = true});
  EXPECT_EQ(linked.size(), sum(kUneven));
  EXPECT_EQ(linked.info().class_names.size(), 10U);
  Loader loader(linked, small());
  EXPECT_EQ(std::ssize(rows_of(loader, 0)), sum(kUneven));
}

TEST_F(ShardLinkTest, ReachesShardsInOtherFolders) {
  fs::create_directory(scratch_.file("shards"));
  fs::create_directory(scratch_.file("links"));
  const std::string pattern = write(kWhole, "shards/train.h5");
  const std::string link = scratch_.file("links/all.h5");
  link_shards(Dataset::open(pattern), link);
  expect_error(ErrorCode::refused_by_policy, {"/links/../shards/train-*-of-00004.h5"},
               [&] { (void)Dataset::open(link); });
  as_written_by_others(link);
  const Dataset linked = Dataset::open(link, {.allow_external = true});
  std::vector<std::byte> last(60);
  linked.read_images(71, 1, last);
  EXPECT_EQ(last, test::image(71, 60));
}

TEST_F(ShardLinkTest, ReplacesNothingUnasked) {
  const Dataset dataset = Dataset::open(write(kWhole));
  const std::string link = scratch_.file("all.h5");
  test::write_bytes(link, {1, 2, 3});
  expect_error(ErrorCode::output_exists, {link, "overwrite"}, [&] { link_shards(dataset, link); });
  EXPECT_EQ(test::read_bytes(link).size(), 3U);
  link_shards(dataset, link, {.overwrite = true});
  EXPECT_EQ(test::read_bytes(link).at(1), 'H');
  const std::string shard = dataset.info().shards[1].path;
  expect_error(ErrorCode::invalid_argument, {shard, "one of the files to be linked"},
               [&] { link_shards(dataset, shard, {.overwrite = true}); });
  expect_error(ErrorCode::invalid_argument, {shard, "one file"},
               [&] { link_shards(Dataset::open(shard), scratch_.file("x.h5")); });
  expect_error(ErrorCode::not_found, {"nowhere"},
               [&] { link_shards(dataset, scratch_.file("nowhere/all.h5")); });
  EXPECT_EQ(scratch_.names().size(), 5U) << "something was left behind";
}

}  // namespace
}  // namespace chunkio
