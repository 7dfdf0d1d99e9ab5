/// Files that other programs wrote, through DirectSource and through libhdf5: both must agree.
#include "sources/direct_source.hpp"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <random>
#include <thread>

#include <gtest/gtest.h>
#include <hdf5.h>

#include <chunkio/dataset.hpp>

#include "base/access.hpp"
#include "h5/chunk_index.hpp"
#include "h5/handle.hpp"
#include "io/direct_file.hpp"
#include "sources/source_select.hpp"
#include "support/byte_sources.hpp"
#include "support/h5_files.hpp"
#include "support/pixels.hpp"
#include "support/placed_rows.hpp"

namespace chunkio::sources {
namespace {

using Array = std::shared_ptr<const h5::StoredArray>;

/// All of an array, read by H5Dread.
std::vector<std::byte> read_all(const Dataset& dataset, const h5::StoredArray& array) {
  if (array.name == dataset.info().images_path) return test::read_rows(dataset, 0, dataset.size());
  std::vector<std::byte> bytes(static_cast<std::size_t>(dataset.size() * array.row_bytes));
  dataset.read_field(array.name, 0, dataset.size(), bytes);
  return bytes;
}

Array open_field(const Dataset& dataset, const std::string& name) {
  const FieldInfo field = dataset.find_field(name).value();
  return h5::open_array(*internal::Access::impl(dataset), name,
                        field.row_shape.with_first_axis(dataset.size()), field.dtype);
}

/// Everything in groups of several sizes, all rows and some rows.
void expect_same_as_libhdf5(const Dataset& dataset, const Array& array, const ChunkSource& source) {
  std::mt19937_64 random(test::test_seed());
  const std::vector<std::byte> everything = read_all(dataset, *array);
  const test::RowBytes expected = test::rows_in(everything, array->row_bytes);
  const std::int64_t chunk_rows = array->stored.chunked ? array->stored.chunk_shape[0] : 3;
  for (const std::int64_t group_rows :
       {chunk_rows, std::int64_t{1}, std::int64_t{9}, dataset.size()}) {
    for (std::int64_t first = 0; first < dataset.size(); first += group_rows) {
      const RowGroup group{first, std::min(group_rows, dataset.size() - first)};
      const std::vector<std::uint32_t> all = test::all_rows(group);
      std::vector<std::uint32_t> some;
      for (const std::uint32_t row : all) some.insert(some.end(), random() % 3, row);
      test::place_rows(source, group, all, array->row_bytes, expected);
      for (const auto& rows : {all, some}) {
        if (rows.empty()) continue;
        const auto ahead = source.prefetch(group, {first + rows.front(), first + rows.back() + 1});
        RowGroup prefetched = group;
        prefetched.prefetched = ahead.get();
        test::place_rows(source, prefetched, rows, array->row_bytes, expected);
      }
    }
  }
}

/// That reads ahead.
std::unique_ptr<ChunkSource> make_source(const Dataset& dataset, const Array& array,
                                         bool direct_io) {
  return select_source(internal::Access::impl(dataset), array,
                       {.kind = SourceKind::direct,
                        .direct_io = direct_io,
                        .read_ahead = std::make_shared<io::ReadAhead>(true),
                        .blocks_ahead = std::make_shared<io::BlocksAhead>(std::int64_t{24} << 20)})
      .source;
}

class ForeignFileTest : public ::testing::TestWithParam<const char*> {
 protected:
  test::ScratchFolder folder_;
};

TEST_P(ForeignFileTest, ImagesAreTheSameAsThroughLibhdf5) {
  if (CHUNKIO_HAVE_CHUNK_ITER && std::string(GetParam()).ends_with("user_block")) {
    GTEST_SKIP() << "versions with H5Dchunk_iter read chunks behind a user block themselves";
  }
  const Dataset dataset = Dataset::open(test::h5py_file(folder_, GetParam()));
  for (const bool direct_io : {false, true}) {
    SCOPED_TRACE(direct_io);
    expect_same_as_libhdf5(
        dataset, internal::Access::impl(dataset)->leading,
        *make_source(dataset, internal::Access::impl(dataset)->leading, direct_io));
  }
}

TEST_P(ForeignFileTest, TheSourceChosenByItselfAndHdf5AgreeToo) {
  const Dataset dataset = Dataset::open(test::h5py_file(folder_, GetParam()));
  for (const SourceKind kind : {SourceKind::automatic, SourceKind::hdf5}) {
    const SelectedSource selected =
        select_source(internal::Access::impl(dataset), internal::Access::impl(dataset)->leading,
                      {.kind = kind, .group_samples = 9});
    SCOPED_TRACE(to_string(selected.kind));
    expect_same_as_libhdf5(dataset, internal::Access::impl(dataset)->leading, *selected.source);
  }
}

INSTANTIATE_TEST_SUITE_P(
    ForeignFiles, ForeignFileTest,
    ::testing::Values("scattered_holes", "scattered_cut", "scattered_cut_deflate", "deep_tree_cut",
                      "one_image_filters", "contiguous", "gray", "nchw", "whole_chunks",
                      "one_chunk", "deflate", "fletcher", "btree1", "implicit", "fixed_array",
                      "extensible_array", "btree2", "btree1_user_block",
                      "extensible_array_user_block", "default_chunks", "default_chunks_deflate",
                      "odd_chunks", "odd_chunks_deflate", "odd_chunks_checked", "odd_chunks_btree1",
                      "celeba_chunks", "large_chunk", "large_deflate", "large_rows_cut",
                      "unallocated_chunks", "never_filled", "masked_chunks", "gray3",
                      "gray3_chunked", "gray3_three_wide", "lzf", "lzf_masked", "lzf_odd_chunks",
                      "lzf_large", "lzf_user_block", "user_block"),
    [](const auto& file) { return std::string(file.param); });

class DirectSourceTest : public ::testing::Test {
 protected:
  test::ScratchFolder folder_;
};

TEST_F(DirectSourceTest, FieldsOfEveryTypeAndChunkingAreTheSameAsThroughLibhdf5) {
  for (const char* file : {"typed_fields", "masked_fields", "lzf_fields"}) {
    const Dataset dataset = Dataset::open(test::h5py_file(folder_, file));
    ASSERT_GE(dataset.info().fields.size(), 2U);
    for (const FieldInfo& field : dataset.info().fields) {
      SCOPED_TRACE(field.name);
      const Array array = open_field(dataset, field.name);
      if (field.name == "big_endian") continue;  // for libhdf5 alone
      for (const bool direct_io : {false, true}) {
        expect_same_as_libhdf5(dataset, array, *make_source(dataset, array, direct_io));
      }
    }
  }
}

TEST_F(DirectSourceTest, MaskedFieldsAreWhatWasWritten) {
  // Not only the same as libhdf5 has it: the values of the script.
  const Dataset dataset = Dataset::open(test::h5py_file(folder_, "masked_fields"));
  const Array array = open_field(dataset, "float32");
  std::vector<float> written(280);
  for (std::size_t i = 0; i < written.size(); ++i) written[i] = static_cast<float>(i) * 3.25F;
  const std::vector<std::byte> expected = test::as_bytes(written);
  test::place_rows(
      DirectSource(internal::Access::impl(dataset), array, internal::Access::impl(dataset)->bytes),
      {0, 40}, test::all_rows({0, 40}), 28, test::rows_in(expected, 28));
}

TEST_F(DirectSourceTest, PartialChunksThatWereLeftUnfilteredAreReadAsTheyAre) {
  const std::string path = folder_.file("partial.h5");
  {
    const h5::ListId access(H5Pcreate(H5P_FILE_ACCESS));
    H5Pset_libver_bounds(access.get(), H5F_LIBVER_V110, H5F_LIBVER_LATEST);
    const h5::FileId file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.get()));
    const h5::ListId creation(H5Pcreate(H5P_DATASET_CREATE));
    const std::array<hsize_t, 4> shape{25, 9, 8, 3};
    const std::array<hsize_t, 4> chunk{10, 4, 8, 3};
    H5Pset_chunk(creation.get(), 4, chunk.data());
    H5Pset_chunk_opts(creation.get(), H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS);
    H5Pset_fletcher32(creation.get());
    H5Pset_deflate(creation.get(), 1);
    const h5::SpaceId space(H5Screate_simple(4, shape.data(), nullptr));
    const h5::DatasetId dataset(H5Dcreate2(file.get(), "images", H5T_NATIVE_UINT8, space.get(),
                                           H5P_DEFAULT, creation.get(), H5P_DEFAULT));
    const auto pixels = test::pattern_rows(0, 25, 9 * 8 * 3);
    ASSERT_GE(
        H5Dwrite(dataset.get(), H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, pixels.data()), 0);
  }
  const Dataset dataset = Dataset::open(path);
  const DirectSource source(internal::Access::impl(dataset),
                            internal::Access::impl(dataset)->leading,
                            internal::Access::impl(dataset)->bytes);
  ASSERT_FALSE(internal::Access::impl(dataset)->leading->partial_chunks_filtered);
  expect_same_as_libhdf5(dataset, internal::Access::impl(dataset)->leading, source);
}

TEST_F(DirectSourceTest, ScatterBypassesThePageCacheToo) {
  for (const char* file : {"contiguous", "btree1", "unallocated_chunks"}) {
    SCOPED_TRACE(file);
    const Dataset dataset = Dataset::open(test::h5py_file(folder_, file));
    const Array& images = internal::Access::impl(dataset)->leading;
    const auto scatter = [&](bool direct_io) {
      return select_source(internal::Access::impl(dataset), images,
                           {.kind = SourceKind::scatter, .direct_io = direct_io})
          .source;
    };
    expect_same_as_libhdf5(dataset, images, *scatter(true));
    if (io::open_direct(internal::Access::impl(dataset)->bytes)) {
      EXPECT_GT(scatter(true)->memory_bytes(1), scatter(false)->memory_bytes(1));
    }
  }
}

TEST_F(DirectSourceTest, ReadsOnlyWhatItNeeds) {
  const auto bytes_read = [&](const char* file, std::uint32_t row) {
    const Dataset dataset = Dataset::open(test::h5py_file(folder_, file));
    const DirectSource source(internal::Access::impl(dataset),
                              internal::Access::impl(dataset)->leading,
                              internal::Access::impl(dataset)->bytes);
    return test::place_rows(source, {0, dataset.size()}, {row}, dataset).bytes_read;
  };
  // One row of an unfiltered chunk of 40, and the rows of four chunks that hold parts of a row.
  EXPECT_EQ(bytes_read("large_chunk", 17), 100 * 131 * 3);
  EXPECT_EQ(bytes_read("large_rows_cut", 1), 2 * 2 * (300 * 701 * 2));
  // Of twelve small chunks all from the first such row to the last, at once.
  EXPECT_EQ(bytes_read("odd_chunks", 17), 11 * (7 * 5 * 3 * 2) + 5 * 3 * 2);
  // Chunk 3 of ten rows is filtered, but its mask says that nothing was done.
  EXPECT_EQ(bytes_read("masked_chunks", 30), 8 * 8 * 3);
  EXPECT_LT(bytes_read("masked_chunks", 0), 10 * 8 * 8 * 3);
  EXPECT_EQ(bytes_read("unallocated_chunks", 0), 0);
}

TEST_F(DirectSourceTest, ManyThreadsShareOneSource) {
  const Dataset dataset = Dataset::open(test::h5py_file(folder_, "odd_chunks_checked"));
  const Array& images = internal::Access::impl(dataset)->leading;
  const DirectSource source(internal::Access::impl(dataset), images,
                            internal::Access::impl(dataset)->bytes);
  const std::vector<std::byte> everything = read_all(dataset, *images);
  const test::RowBytes expected = test::rows_in(everything, images->row_bytes);
  std::vector<std::thread> threads;
  for (unsigned int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      for (int round = 0; round < 100; ++round) {
        const auto first = static_cast<std::int64_t>(random() % 6) * 7;
        const RowGroup group{first, std::min<std::int64_t>(7, 40 - first)};
        RowGroup ahead = group;
        const auto prefetched =
            source.prefetch(group, {group.first_row, group.first_row + group.num_rows});
        if (round % 10 == 0) ahead.prefetched = prefetched.get();
        test::place_rows(source, ahead, test::all_rows(group), images->row_bytes, expected);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(DirectSourceTest, RefusesWhatOnlyLibhdf5CanRead) {
  const Dataset dataset = Dataset::open(test::h5py_file(folder_, "fields"));
  const Array big_endian = open_field(dataset, "meta/box");
  test::expect_error(ErrorCode::unsupported,
                     {dataset.info().path, "meta/box", "byte order", "hdf5 source"}, [&] {
                       const DirectSource source(internal::Access::impl(dataset), big_endian,
                                                 internal::Access::impl(dataset)->bytes);
                     });
}

TEST_F(DirectSourceTest, LeavesFiltersItDoesNotKnowToLibhdf5) {
  const Dataset dataset = Dataset::open(test::h5py_file(folder_, "scaleoffset"));
  const Array array = open_field(dataset, "depth");
  EXPECT_EQ(DirectSource::reason_against(*array), "scaleoffset filter");
  const SelectedSource selected =
      select_source(internal::Access::impl(dataset), array, {.group_samples = 8});
  EXPECT_EQ(selected.kind, SourceKind::hdf5);
  EXPECT_EQ(selected.reason, "scaleoffset filter");
  expect_same_as_libhdf5(dataset, array, *selected.source);
}

TEST_F(DirectSourceTest, MemoryIsBoundedByTwoChunksAThread) {
  for (const char* file : {"large_deflate", "large_chunk", "contiguous", "deflate"}) {
    const Dataset dataset = Dataset::open(test::h5py_file(folder_, file));
    const h5::StoredArray& images = *internal::Access::impl(dataset)->leading;
    const std::int64_t index = images.index ? images.index->memory_bytes() : 0;
    const std::int64_t chunk =
        images.filters.empty() ? 0 : images.stored.chunk_shape.num_elements();
    for (const bool direct_io : {false, true}) {
      const auto& bytes = internal::Access::impl(dataset)->bytes;
      const DirectSource source(internal::Access::impl(dataset),
                                internal::Access::impl(dataset)->leading,
                                direct_io ? io::direct_if_possible(bytes) : bytes);
      EXPECT_EQ(source.memory_bytes(0), index);
      EXPECT_GE(source.memory_bytes(1), index + 2 * chunk);
      EXPECT_LE(source.memory_bytes(1), index + 2 * (chunk + chunk / 16) + (9 << 20)) << file;
      EXPECT_EQ(source.memory_bytes(5) - index, 5 * (source.memory_bytes(1) - index));
    }
  }
}

/// A file with something wrong: where chunk 2 of images lies, and what was done to it.
class DamagedChunkTest : public DirectSourceTest {
 protected:
  /// Makes the file, lets `damage` change bytes [begin, end) of chunk `chunk`, and opens it.
  Dataset open_damaged(const char* name, std::int64_t chunk,
                       const std::function<void(std::span<std::uint8_t>)>& damage) {
    const std::string path = test::h5py_file(folder_, name);
    h5::ChunkEntry entry;
    {
      const Dataset whole = Dataset::open(path);
      std::vector<std::int64_t> position(4);
      position[0] = chunk;
      entry = internal::Access::impl(whole)->leading->index->find(position);
    }
    std::vector<std::uint8_t> bytes = test::read_bytes(path);
    damage(std::span(bytes).subspan(static_cast<std::size_t>(entry.file_offset),
                                    static_cast<std::size_t>(entry.stored_bytes)));
    test::write_bytes(path, bytes);
    return Dataset::open(path);
  }

  /// Reads row group `group` of `rows` rows.
  static void place(const Dataset& dataset, std::int64_t group, std::int64_t rows) {
    const DirectSource source(internal::Access::impl(dataset),
                              internal::Access::impl(dataset)->leading,
                              internal::Access::impl(dataset)->bytes);
    const RowGroup wanted{group * rows, std::min(rows, dataset.size() - group * rows)};
    test::place_rows(source, wanted, test::all_rows(wanted), dataset);
  }
};

TEST_F(DamagedChunkTest, ADamagedDeflateStreamNamesTheChunkAndItsRows) {
  const Dataset dataset = open_damaged("deflate", 1, [](std::span<std::uint8_t> chunk) {
    std::fill(chunk.begin() + 20, chunk.begin() + 40, std::uint8_t{0xff});
  });
  test::expect_error(ErrorCode::corrupt_data,
                     {"chunk 1 (rows 16 to 31) of images in " + dataset.info().path,
                      "its deflate stream is damaged", "download"},
                     [&] { place(dataset, 1, 16); });
  place(dataset, 0, 16);
  place(dataset, 2, 16);
}

TEST_F(DamagedChunkTest, AWrongChecksumIsAnErrorWhateverWasChanged) {
  for (const int place_in_chunk : {0, 100, 559, 560, 563}) {
    const Dataset dataset = open_damaged("fletcher", 2, [&](std::span<std::uint8_t> chunk) {
      ASSERT_EQ(chunk.size(), 7U * 5 * 8 * 2 + 4);
      chunk[static_cast<std::size_t>(place_in_chunk)] ^= 0x10;
    });
    test::expect_error(ErrorCode::corrupt_data,
                       {"chunk 2 (rows 14 to 20) of images in " + dataset.info().path,
                        "its fletcher32 checksum is 0x", " instead of 0x"},
                       [&] { place(dataset, 2, 7); });
    place(dataset, 1, 7);
  }
}

TEST_F(DamagedChunkTest, EveryFlippedByteOfACheckedChunkIsAnError) {
  const std::string path = test::h5py_file(folder_, "odd_chunks_checked");
  const Dataset whole = Dataset::open(path);
  const std::vector<std::int64_t> position{1, 0, 0, 0};
  const h5::ChunkEntry entry = internal::Access::impl(whole)->leading->index->find(position);
  const std::vector<std::uint8_t> bytes = test::read_bytes(path);
  const std::string other = folder_.file("other.h5");
  for (std::int64_t at = 0; at < entry.stored_bytes; ++at) {
    std::vector<std::uint8_t> changed = bytes;
    changed[static_cast<std::size_t>(entry.file_offset + at)] ^= 0x41;
    test::write_bytes(other, changed);
    const Dataset dataset = Dataset::open(other);
    test::expect_error(ErrorCode::corrupt_data, {"chunk 1 (rows 7 to 13) of images", other},
                       [&] { place(dataset, 1, 7); });
  }
}

TEST_F(DamagedChunkTest, AFileCutShortIsAnErrorBeforeAndWhileReading) {
  const std::string path = test::h5py_file(folder_, "extensible_array");
  const Dataset dataset = Dataset::open(path);
  const DirectSource source(internal::Access::impl(dataset),
                            internal::Access::impl(dataset)->leading,
                            internal::Access::impl(dataset)->bytes);
  // Row 0 was written second, so it is gone when half of the file is.
  test::place_rows(source, {21, 7}, {0}, dataset);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 8 * 8 * 3 * 7 * 4);
  test::expect_error(ErrorCode::corrupt_data, {path, "changed"}, [&] {
    test::place_rows(source, {21, 7}, {0}, dataset);
  });
  EXPECT_THROW(place(Dataset::open(path), 3, 7), Error);
}

TEST_F(DamagedChunkTest, AChunkBeyondTheEndOfTheFileIsAnErrorThatNamesIt) {
  // The B-tree of early versions has no checksum: the address of a chunk can be changed to
  // nonsense.
  const std::string path = test::h5py_file(folder_, "odd_chunks_btree1");
  const std::vector<std::uint8_t> bytes = test::read_bytes(path);
  std::int64_t address = 0;
  {
    const Dataset whole = Dataset::open(path);
    const std::vector<std::int64_t> position{1, 0, 0, 0};
    address = internal::Access::impl(whole)->leading->index->find(position).file_offset;
  }
  std::vector<std::uint8_t> pattern;
  for (int i = 0; i < 8; ++i) pattern.push_back(static_cast<std::uint8_t>(address >> 8 * i));
  const auto found = std::search(bytes.begin(), bytes.end(), pattern.begin(), pattern.end());
  ASSERT_NE(found, bytes.end());
  std::vector<std::uint8_t> changed = bytes;
  changed[static_cast<std::size_t>(found - bytes.begin()) + 5] = 0x7f;
  test::write_bytes(path, changed);
  const Dataset dataset = Dataset::open(path);
  test::expect_error(ErrorCode::corrupt_data, {path, "images"}, [&] { place(dataset, 1, 7); });
  place(dataset, 0, 7);
}

TEST_F(DamagedChunkTest, ReadErrorsNameTheChunkAndTheCause) {
  const Dataset dataset = Dataset::open(test::h5py_file(folder_, "deflate"));
  const auto& impl = internal::Access::impl(dataset);
  const std::vector<std::int64_t> second{1, 0, 0, 0};
  const h5::ChunkEntry entry = impl->leading->index->find(second);
  const auto broken = std::make_shared<const test::FailingSource>(
      impl->bytes, ByteRange{entry.file_offset, entry.file_offset + 1});
  const DirectSource source(impl, impl->leading, broken);
  test::expect_error(ErrorCode::io_failed,
                     {"chunk 1 (rows 16 to 31) of images", "the disk has failed"}, [&] {
                       test::place_rows(source, {16, 16}, {0}, dataset);
                     });
}

// ---- Small chunks ----

/// A source of some kind that reads through `bytes`.
std::unique_ptr<ChunkSource> source_through(SourceKind kind, const Dataset& dataset) {
  return select_source(internal::Access::impl(dataset), internal::Access::impl(dataset)->leading,
                       {.kind = kind})
      .source;
}

TEST(SmallChunks, ThatLieCloseAreReadTogether) {
  const test::ScratchFolder folder;
  struct Way {
    const char* file;
    SourceKind kind;
    std::int64_t most_reads;
  };
  // 1000 chunks, between which the nodes of the index lie; mapped files are not read.
  for (const Way& way :
       {Way{"one_image_chunks", SourceKind::direct, 6},
        Way{"one_image_chunks", SourceKind::scatter, 40},
        Way{"one_image_deflate", SourceKind::direct, 6}, Way{"scattered", SourceKind::direct, 6}}) {
    SCOPED_TRACE(way.file + std::string(" ") + std::string(to_string(way.kind)));
    const auto bytes = std::make_shared<test::CountingSource>(test::h5py_file(folder, way.file));
    const Dataset dataset = Dataset::open(bytes);
    const auto source = source_through(way.kind, dataset);
    const RowGroup group{0, 1000};
    const std::int64_t row_bytes = dataset.info().sample_bytes();
    const auto expected = [&](std::int64_t row) { return test::pattern_rows(row, 1, row_bytes); };
    test::place_rows(*source, group, {0}, row_bytes, expected);  // the index is read
    const std::int64_t before = bytes->requests;
    const ReadCost cost =
        test::place_rows(*source, group, test::all_rows(group), row_bytes, expected);
    EXPECT_LE(bytes->requests - before, way.most_reads);
    EXPECT_LT(cost.bytes_read, static_cast<std::int64_t>(std::filesystem::file_size(
                                   folder.file(way.file + std::string(".h5")))));
  }
}

TEST(SmallChunks, OfThoseReadTogetherOnlyWhatCannotBeReadIsLost) {
  const test::ScratchFolder folder;
  for (const char* file : {"one_image_chunks", "one_image_deflate", "scattered"}) {
    for (const SourceKind kind : {SourceKind::scatter, SourceKind::direct, SourceKind::hdf5}) {
      if (kind == SourceKind::scatter && file == std::string("one_image_deflate")) continue;
      SCOPED_TRACE(file + std::string(" ") + std::string(to_string(kind)));
      const std::string path = test::h5py_file(folder, file);
      ByteRange damaged;
      {
        const Dataset dataset = Dataset::open(path);
        const std::array<std::int64_t, 4> coord{300, 0, 0, 0};
        const auto entry = internal::Access::impl(dataset)->leading->index->find(coord);
        damaged = {entry.file_offset + 10, entry.file_offset + 11};
      }
      const Dataset dataset = Dataset::open(
          std::make_shared<test::FailingSource>(std::make_shared<io::LocalFile>(path), damaged));
      const auto source = source_through(kind, dataset);
      const std::int64_t row_bytes = dataset.info().sample_bytes();
      std::vector<std::byte> memory(static_cast<std::size_t>(900 * row_bytes));
      std::vector<RowTarget> rows;
      for (std::uint32_t row = 0; row < 900; ++row) {
        rows.push_back({row, memory.data() + row * row_bytes});
      }
      try {
        source->place({100, 900}, rows, {});
        ADD_FAILURE() << "nothing was damaged";
      } catch (const DamagedRows& error) {
        EXPECT_EQ(error.code(), ErrorCode::io_failed);
        EXPECT_EQ(error.rows(), (std::vector<RowRange>{{300, 301}}));
        EXPECT_NE(std::string(error.what()).find("the disk has failed"), std::string::npos);
        EXPECT_NE(std::string(error.what()).find("300"), std::string::npos) << error.what();
      }
      for (std::int64_t row = 0; row < 900; ++row) {
        if (row == 200) continue;
        const auto expected = test::pattern_rows(100 + row, 1, row_bytes);
        ASSERT_TRUE(std::equal(expected.begin(), expected.end(), memory.begin() + row * row_bytes))
            << row;
      }
    }
  }
}

}  // namespace
}  // namespace chunkio::sources
