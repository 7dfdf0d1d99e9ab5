#include "harness/metered_driver.hpp"

#include <sys/stat.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/access.hpp"
#include "h5/dataset_impl.hpp"
#include "h5/error_stack.hpp"
#include "h5/file_contents.hpp"
#include "h5/library.hpp"
#include "support/errors.hpp"
#include "support/h5_files.hpp"

namespace bench {
namespace {

namespace test = chunkio::test;
using chunkio::Dataset;
using chunkio::h5::DatasetId;
using chunkio::h5::FileId;
using chunkio::h5::Library;
using chunkio::h5::ListId;
using chunkio::h5::SpaceId;
using chunkio::h5::StoredArray;

constexpr std::int64_t kRowBytes = 8 * 8 * 3;

class MeteredDriverTest : public testing::Test {
 protected:
  void open(const std::string& path) {
    ListId access(chunkio::h5::check_id(H5Pcreate(H5P_FILE_ACCESS), "open", path));
    reads_.install(access, path);
    file_ = FileId(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get()));
    images_ = chunkio::h5::open_dataset(file_, "images", path);
  }

  /// \returns whether libhdf5 could.
  bool read_row(std::int64_t row, std::vector<std::byte>& out) {
    out.resize(kRowBytes);
    const std::array<hsize_t, 4> start{static_cast<hsize_t>(row), 0, 0, 0};
    const std::array<hsize_t, 4> count{1, 8, 8, 3};
    const SpaceId in_file(H5Dget_space(images_.get()));
    const SpaceId in_memory(H5Screate_simple(4, count.data(), nullptr));
    H5Sselect_hyperslab(in_file.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(),
                        nullptr);
    return H5Dread(images_.get(), H5T_NATIVE_UINT8, in_memory.get(), in_file.get(), H5P_DEFAULT,
                   out.data()) >= 0;
  }

  [[nodiscard]] std::vector<MeteredRead> raw_reads() const {
    std::vector<MeteredRead> raw;
    for (const MeteredRead& read : told_) {
      if (read.raw_data) raw.push_back(read);
    }
    return raw;
  }

  test::ScratchFolder folder_;
  Library::Guard guard_ = Library::lock();
  std::vector<MeteredRead> told_;
  MeteredReads reads_{[this](const MeteredRead& read) { told_.push_back(read); }};
  // Closed before reads_ is gone.
  FileId file_;
  DatasetId images_;
};

TEST_F(MeteredDriverTest, TellsOfEveryChunkThatIsLoadedAndOfNoneThatIsCached) {
  const std::string path = test::h5py_file(folder_, "whole_chunks");
  const Dataset dataset = Dataset::open(path);
  const StoredArray& stored = *chunkio::internal::Access::impl(dataset)->leading;
  const std::int64_t k = stored.stored.chunk_shape[0];
  open(path);
  ASSERT_TRUE(images_);
  EXPECT_FALSE(told_.empty()) << "metadata was read";
  EXPECT_TRUE(raw_reads().empty());
  std::vector<std::byte> row;
  for (std::int64_t i = 0; i < dataset.size(); ++i) {
    ASSERT_TRUE(read_row(i, row));
    EXPECT_EQ(row, test::pattern_rows(i, 1, kRowBytes));
  }
  const auto raw = raw_reads();
  ASSERT_EQ(raw.size(), static_cast<std::size_t>(stored.num_chunks));
  for (std::int64_t chunk = 0; chunk < stored.num_chunks; ++chunk) {
    const std::array<std::int64_t, 4> coord{chunk, 0, 0, 0};
    const MeteredRead& read = raw[static_cast<std::size_t>(chunk)];
    EXPECT_EQ(read.bytes, k * kRowBytes);
    EXPECT_EQ(read.file_offset, stored.index->find(coord).file_offset);
  }
}

TEST_F(MeteredDriverTest, SmallReadsOfContiguousDataGoThroughTheSieveBufferAsTheyUsuallyDo) {
  open(test::h5py_file(folder_, "contiguous"));
  std::vector<std::byte> row;
  for (std::int64_t i = 0; i < 40; ++i) {
    ASSERT_TRUE(read_row(i, row));
    EXPECT_EQ(row, test::pattern_rows(i, 1, kRowBytes));
  }
  EXPECT_EQ(raw_reads().size(), 1U);
}

TEST_F(MeteredDriverTest, CountsBytesFromTheBeginOfTheFileAlsoBehindAUserBlock) {
  const std::string path = test::h5py_file(folder_, "user_block");
  const Dataset dataset = Dataset::open(path);
  open(path);
  std::vector<std::byte> row;
  ASSERT_TRUE(read_row(0, row));
  EXPECT_EQ(row, test::pattern_rows(0, 1, kRowBytes));
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  const StoredArray& stored = *chunkio::internal::Access::impl(dataset)->leading;
  const std::int64_t expected = stored.linear_offset
                                    ? *stored.linear_offset
                                    : stored.index->find(std::array<std::int64_t, 4>{}).file_offset;
  ASSERT_FALSE(raw_reads().empty());
  EXPECT_EQ(raw_reads().front().file_offset, expected);
}

TEST_F(MeteredDriverTest, AFileThatIsNotThereSaysSo) {
  const std::string path = folder_.file("absent.h5");
  test::expect_error(chunkio::ErrorCode::not_found, {path}, [&] { open(path); });
}

TEST_F(MeteredDriverTest, OpensNothingForWriting) {
  const std::string path = test::h5py_file(folder_, "whole_chunks");
  ListId access(H5Pcreate(H5P_FILE_ACCESS));
  reads_.install(access, path);
  EXPECT_FALSE(FileId(H5Fopen(path.c_str(), H5F_ACC_RDWR, access.get())));
  EXPECT_FALSE(
      FileId(H5Fcreate(folder_.file("new.h5").c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.get())));
}

}  // namespace
}  // namespace bench
