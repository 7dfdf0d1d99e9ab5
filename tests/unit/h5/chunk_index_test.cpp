#include "h5/chunk_index.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>

#include <gtest/gtest.h>
#include <hdf5.h>

#include <chunkio/dataset.hpp>
#include <chunkio/loader.hpp>
#include <chunkio/verify.hpp>

#include "base/access.hpp"
#include "base/positional_io.hpp"
#include "h5/dataset_impl.hpp"
#include "h5/handle.hpp"
#include "h5/library.hpp"
#include "support/h5_files.hpp"

namespace chunkio::h5 {
namespace {

using test::expect_error;

class ChunkIndexTest : public testing::Test {
 protected:
  static ChunkEntry find(const Dataset& dataset, std::int64_t chunk) {
    const std::array<std::int64_t, 4> coord{chunk, 0, 0, 0};
    return chunkio::internal::Access::impl(dataset)->leading->index->find(coord);
  }

  static const ChunkIndex& index_of(const Dataset& dataset) {
    return *chunkio::internal::Access::impl(dataset)->leading->index;
  }
  /// One that asks libhdf5 for each chunk.
  static std::unique_ptr<ChunkIndex> index_without_tree(const Dataset& dataset) {
    const auto& impl = chunkio::internal::Access::impl(dataset);
    const StoredArray& images = *impl->leading;
    return std::make_unique<ChunkIndex>(
        impl->bytes,
        ChunkIndex::Target{.path = dataset.info().path,
                           .dataset = images.name,
                           .shape = images.stored.shape,
                           .chunk = images.stored.chunk_shape,
                           .first_byte = 48,
                           .file_bytes = impl->bytes->size(),
                           .raw_bytes = images.filters.empty() ? images.chunk_bytes : 0});
  }
  static ChunkEntry find(const ChunkIndex& index, std::int64_t chunk) {
    const std::array<std::int64_t, 4> coord{chunk, 0, 0, 0};
    return index.find(coord);
  }

  /// Finds every chunk of whole samples and compares what lies there with the pattern.
  static void expect_chunks(const Dataset& dataset) {
    const StoredArray& images = *chunkio::internal::Access::impl(dataset)->leading;
    const std::int64_t k = images.stored.chunk_shape[0];
    const std::int64_t bytes = dataset.info().sample_bytes();
    for (std::int64_t chunk = images.num_chunks - 1; chunk >= 0; --chunk) {
      SCOPED_TRACE(chunk);
      const ChunkEntry entry = find(dataset, chunk);
      ASSERT_TRUE(entry.allocated());
      EXPECT_GE(entry.stored_bytes, k * bytes);
      EXPECT_EQ(entry.filter_mask, 0U);
      const std::int64_t rows = std::min(k, dataset.size() - chunk * k);
      std::vector<std::byte> stored(static_cast<std::size_t>(rows * bytes));
      chunkio::internal::Access::impl(dataset)->bytes->read_at(entry.file_offset, stored, {});
      ASSERT_TRUE(stored == test::pattern_rows(chunk * k, rows, bytes));
    }
  }

  test::ScratchFolder folder_;
};

class ChunkIndexKindTest : public ChunkIndexTest,
                           public testing::WithParamInterface<const char*> {};

TEST_P(ChunkIndexKindTest, FindsEveryChunkWhereItLies) {
  if (CHUNKIO_HAVE_CHUNK_ITER && std::string(GetParam()).ends_with("user_block")) {
    GTEST_SKIP() << "versions with H5Dchunk_iter read chunks behind a user block themselves";
  }
  {
    const Dataset dataset = Dataset::open(test::h5py_file(folder_, GetParam()));
    ASSERT_TRUE(chunkio::internal::Access::impl(dataset)->leading->index);
    EXPECT_EQ(chunkio::internal::Access::impl(dataset)->leading->index->num_chunks(), 6);
    expect_chunks(dataset);
    expect_chunks(dataset);  // once more, from memory
  }
  EXPECT_EQ(live_ids(), 0);
}

INSTANTIATE_TEST_SUITE_P(Kinds, ChunkIndexKindTest,
                         testing::Values("btree1", "implicit", "fixed_array", "extensible_array",
                                         "btree2", "btree1_user_block",
                                         "extensible_array_user_block"),
                         [](const auto& kind) { return std::string(kind.param); });

TEST_F(ChunkIndexTest, KnowsTheImplicitIndexFromTheOthers) {
  EXPECT_TRUE(chunkio::internal::Access::impl(Dataset::open(test::h5py_file(folder_, "one_chunk")))
                  ->leading->index);
  for (const char* name : {"btree1", "extensible_array", "btree2"}) {
    EXPECT_FALSE(chunkio::internal::Access::impl(Dataset::open(test::h5py_file(folder_, name)))
                     ->leading->linear_offset)
        << name;
  }
}

TEST_F(ChunkIndexTest, TellsStoredSizesAndFilterMasks) {
  const Dataset dataset = Dataset::open(test::h5py_file(folder_, "masked_chunks"));
  const std::int64_t raw_bytes = 10 * 8 * 8 * 3;
  EXPECT_LT(find(dataset, 0).stored_bytes, raw_bytes);
  EXPECT_EQ(find(dataset, 0).filter_mask, 0U);
  EXPECT_EQ(find(dataset, 1).stored_bytes, raw_bytes);
  EXPECT_EQ(find(dataset, 1).filter_mask, 2U);
  EXPECT_LT(find(dataset, 2).stored_bytes, raw_bytes);
  EXPECT_EQ(find(dataset, 2).filter_mask, 1U);
  EXPECT_EQ(find(dataset, 3).filter_mask, 3U);
}

TEST_F(ChunkIndexTest, ChunksWithoutStorageAreSaidToHaveNone) {
  const Dataset dataset = Dataset::open(test::h5py_file(folder_, "unallocated_chunks"));
  EXPECT_FALSE(find(dataset, 0).allocated());
  EXPECT_TRUE(find(dataset, 1).allocated());
  EXPECT_FALSE(find(dataset, 2).allocated());
  EXPECT_EQ(chunkio::internal::Access::impl(dataset)->leading->fill_value,
            std::vector<std::byte>{std::byte{9}});
}

/// Listing them with H5Dget_chunk_info would take minutes, since it walks the index at each call.
TEST_F(ChunkIndexTest, AHundredThousandChunksDoNotTakeQuadraticTime) {
  const std::string path = test::h5py_file(folder_, "many_chunks");
  const auto start = std::chrono::steady_clock::now();
  const Dataset dataset = Dataset::open(path);
  std::map<std::int64_t, std::int64_t> offsets;
  for (std::int64_t i = 0; i < 100'000; ++i) {
    const std::int64_t chunk = i * 7919 % 100'000;
    offsets[chunk] = find(dataset, chunk).file_offset;
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  RecordProperty("milliseconds", static_cast<int>(seconds.count() * 1000));
  EXPECT_EQ(offsets.size(), 100'000U);
  EXPECT_LT(seconds.count(), 60);
  std::vector<std::byte> stored(4);
  chunkio::internal::Access::impl(dataset)->bytes->read_at(offsets[77'777], stored, {});
  EXPECT_EQ(stored, test::pattern_rows(77'777, 1, 4));
}

// ---- Entries that cannot be true ----

/// A file with the address of chunk `chunk` in its index replaced by `address`. The B-tree of early
/// versions has no checksum.
std::string with_address(const test::ScratchFolder& folder, std::int64_t chunk,
                         const std::function<std::uint64_t(std::uint64_t)>& change) {
  std::string path = test::h5py_file(folder, "btree1");
  std::uint64_t address = 0;
  {
    const Dataset dataset = Dataset::open(path);
    const std::array<std::int64_t, 4> coord{chunk, 0, 0, 0};
    address = static_cast<std::uint64_t>(
        chunkio::internal::Access::impl(dataset)->leading->index->find(coord).file_offset);
  }
  auto bytes = test::read_bytes(path);
  int found = 0;
  for (std::size_t at = 0; at + 8 <= bytes.size(); ++at) {
    std::uint64_t value = 0;
    std::memcpy(&value, bytes.data() + at, 8);
    if (value != address) continue;
    value = change(address);
    std::memcpy(bytes.data() + at, &value, 8);
    ++found;
    break;
  }
  EXPECT_EQ(found, 1);
  test::write_bytes(path, bytes);
  return path;
}

TEST_F(ChunkIndexTest, AChunkOutsideOfTheFilesBytesIsAnError) {
  for (const std::uint64_t address :
       {std::uint64_t{1} << 40, (std::uint64_t{1} << 63) - 2000, ~std::uint64_t{0} - 1,
        std::uint64_t{1} << 63, std::uint64_t{1}, std::uint64_t{47}}) {  // or in the superblock
    SCOPED_TRACE(address);
    const std::string path = with_address(folder_, 3, [&](std::uint64_t) { return address; });
    const Dataset dataset = Dataset::open(path);
    EXPECT_TRUE(find(dataset, 2).allocated());
    expect_error(ErrorCode::corrupt_data,
                 {path, "chunk [3,0,0,0] (rows 21 to 27) of images",
                  address < 48 ? "outside of the file's bytes" : "copy or download"},
                 [&] { (void)find(dataset, 3); });
  }
}

/// Chunks lie in the order 4, 0, 5, 2, 1, 3 of the numbers of their rows.
TEST_F(ChunkIndexTest, OfChunksThatOverlapNeitherIsBelieved) {
  for (const bool listed : {true, false}) {
    for (const std::int64_t first : {0, 5}) {
      SCOPED_TRACE(first);
      const std::string path =
          with_address(folder_, 0, [](std::uint64_t address) { return address + 100; });
      const Dataset dataset = Dataset::open(path);
      const auto one_by_one = index_without_tree(dataset);
      const ChunkIndex& index = listed ? index_of(dataset) : *one_by_one;
      // Which of the two is wrong cannot be told, and only the second one shows that one is, unless
      // all are listed at once.
      EXPECT_TRUE(CHUNKIO_HAVE_CHUNK_ITER || listed || find(index, first).allocated());
      for (const std::int64_t chunk : {5 - first, first}) {
        expect_error(ErrorCode::unsupported,
                     {path, "chunk [0,0,0,0] (rows 0 to 6)", "chunk [5,0,0,0] (rows 35 to 39)",
                      "of images", "overlap", "copy or download"},
                     [&] { (void)find(index, chunk); });
      }
      for (std::int64_t chunk = 1; chunk < 5; ++chunk) {
        EXPECT_TRUE(find(index, chunk).allocated()) << chunk;
      }
    }
  }
}

TEST_F(ChunkIndexTest, WhatOverlapsABadChunkIsBadToo) {
  const std::string path =
      with_address(folder_, 0, [](std::uint64_t address) { return address + 2 * 1344 - 100; });
  const Dataset dataset = Dataset::open(path);  // over the end of chunk 5 and much of chunk 2
  for (const bool listed : {true, false}) {
    const auto one_by_one = index_without_tree(dataset);
    const ChunkIndex& index = listed ? index_of(dataset) : *one_by_one;
    EXPECT_TRUE(CHUNKIO_HAVE_CHUNK_ITER || listed || find(index, 5).allocated());
    for (const std::int64_t chunk : {0, 2, 5}) {
      expect_error(ErrorCode::unsupported, {"overlap"}, [&] { (void)find(index, chunk); });
    }
    EXPECT_TRUE(find(index, 1).allocated());
  }
}

/// What is not in the tree has no storage, unless a part of the tree is damaged.
TEST_F(ChunkIndexTest, ChunksOfADamagedNodeAreErrorsAndNoOthers) {
  const std::string path = test::h5py_file(folder_, "scattered_holes");
  auto bytes = test::read_bytes(path);
  std::vector<std::size_t> leaves;
  for (std::size_t at = 0; at + 8 < bytes.size(); ++at) {
    if (std::memcmp(bytes.data() + at, "TREE\1\0", 6) == 0) leaves.push_back(at);
  }
  ASSERT_GT(leaves.size(), 10U);
  bytes[leaves[3]] = 'X';
  test::write_bytes(path, bytes);
  const Dataset dataset = Dataset::open(path);
  std::int64_t lost = 0;
  std::int64_t found = 0;
  for (std::int64_t chunk = 0; chunk < 1000; ++chunk) {
    try {
      found += find(dataset, chunk).allocated() ? 1 : 0;
    } catch (const Error& error) {
      ++lost;
      EXPECT_EQ(error.code(), ErrorCode::corrupt_data);
      const std::string message = error.what();
      for (const char* part : {path.c_str(), "of images", "index of chunks", "copy or download"}) {
        EXPECT_TRUE(CHUNKIO_HAVE_CHUNK_ITER || message.find(part) != std::string::npos) << message;
      }
    }
  }
  // Those without storage cannot be told from those that are lost.
  EXPECT_GT(lost, 142);
  EXPECT_TRUE(CHUNKIO_HAVE_CHUNK_ITER || found >= 857 - 64) << found;
}

TEST_F(ChunkIndexTest, VerifyingTheIndexNamesEveryBadChunk) {
  const auto bad_chunks = [&](std::int64_t chunk, const auto& move) {
    const VerifyResult result =
        verify_chunk_index(Dataset::open(with_address(folder_, chunk, move)));
    EXPECT_EQ(result.num_chunks, 6);
    EXPECT_EQ(result.bytes_read, 0);
    std::vector<std::int64_t> chunks;
    for (const DamagedChunk& damaged : result.damaged) {
      chunks.push_back(damaged.chunk);
      EXPECT_EQ(damaged.rows.begin, damaged.chunk * 7);
      EXPECT_EQ(damaged.rows.end, std::min<std::int64_t>(damaged.chunk * 7 + 7, 40));
      EXPECT_NE(damaged.reason.find("images"), std::string::npos) << damaged.reason;
    }
    return chunks;
  };
  using Chunks = std::vector<std::int64_t>;
  EXPECT_EQ(bad_chunks(3, [](std::uint64_t address) { return address; }), Chunks{});
  EXPECT_EQ(bad_chunks(3, [](std::uint64_t) { return std::uint64_t{1} << 40; }), Chunks{3});
  EXPECT_EQ(bad_chunks(0, [](std::uint64_t address) { return address + 100; }), (Chunks{0, 5}));
}

TEST_F(ChunkIndexTest, VerifyingAnIndexThatIsComputedLooksNothingUp) {
  const Dataset dataset = Dataset::open(test::h5py_file(folder_, "implicit_chunks"));
  EXPECT_EQ(verify_chunk_index(dataset).num_chunks, 0);
}

TEST_F(ChunkIndexTest, ChunksThatOverlapAreNotSkipped) {
  const std::string path =
      with_address(folder_, 0, [](std::uint64_t address) { return address + 100; });
  Loader loader(Dataset::open(path), {.batch_size = 4, .io = {.on_error = OnError::skip}});
  loader.start_epoch(0);
  expect_error(ErrorCode::unsupported, {path, "overlap"}, [&] {
    while (loader.next()) {
    }
  });
}

/// The path may lead to another file when the first chunk is asked for.
TEST_F(ChunkIndexTest, AFileThatTookTheNameIsNotLookedAt) {
  const std::string path = test::h5py_file(folder_, "btree1");
  const Dataset dataset = Dataset::open(path);
  std::filesystem::rename(test::h5py_file(folder_, "btree2"), path);
  expect_chunks(dataset);
}

// ---- More chunks than a table is made for ----

TEST_F(ChunkIndexTest, AnyNumberOfComputedAddressesNeedsNoTable) {
  const Dataset dataset = Dataset::open(test::h5py_file(folder_, "implicit_chunks"));
  const StoredArray& images = *chunkio::internal::Access::impl(dataset)->leading;
  ASSERT_GT(images.num_chunks, ChunkIndex::kMaxChunks);
  EXPECT_EQ(images.needs_libhdf5, "");
  EXPECT_FALSE(images.index);
  ASSERT_TRUE(images.linear_offset);
  for (const std::int64_t row : {std::int64_t{0}, std::int64_t{1}, dataset.size() - 1}) {
    std::vector<std::byte> stored(2);
    chunkio::internal::Access::impl(dataset)->bytes->read_at(*images.linear_offset + 2 * row,
                                                             stored, {});
    EXPECT_EQ(stored, test::pattern_rows(row, 1, 2)) << row;
  }
}

TEST_F(ChunkIndexTest, TooManyOthersAreLeftToLibhdf5) {
  const Dataset dataset = Dataset::open(test::h5py_file(folder_, "huge_field"));
  EXPECT_EQ(chunkio::internal::Access::impl(dataset)->leading->num_chunks, std::int64_t{1} << 30);
  EXPECT_EQ(chunkio::internal::Access::impl(dataset)->leading->needs_libhdf5,
            "too many chunks for an index");
  EXPECT_FALSE(chunkio::internal::Access::impl(dataset)->leading->index);
}

TEST_F(ChunkIndexTest, ChunksThatCannotBeCountedAreAnError) {
  const std::string path = test::h5py_file(folder_, "btree1");
  const Dataset dataset = Dataset::open(path);
  const std::int64_t half = std::int64_t{1} << 32;
  const auto guard = Library::lock();
  expect_error(ErrorCode::corrupt_data, {path, "images has more chunks than can be counted"}, [&] {
    ChunkIndex(chunkio::internal::Access::impl(dataset)->bytes,
               {.path = path, .dataset = "images", .shape = {half, half}, .chunk = {1, 1}});
  });
}

}  // namespace
}  // namespace chunkio::h5
