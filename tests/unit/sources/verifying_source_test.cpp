#include "sources/verifying_source.hpp"

#include <array>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <hdf5.h>

#include "base/access.hpp"
#include "io/direct_file.hpp"
#include "io/local_file.hpp"
#include "sources/source_select.hpp"
#include "support/cached_pages.hpp"
#include "support/damage.hpp"
#include "support/errors.hpp"
#include "support/h5_files.hpp"
#include "support/pixels.hpp"
#include "support/placed_rows.hpp"
#include "support/scratch.hpp"

namespace chunkio::sources {
namespace {

using test::expect_error;

class VerifyingSourceTest : public testing::Test {
 protected:
  static constexpr std::int64_t kChunk = 8;

  VerifyingSourceTest() { test::write_packed(path_, file_); }

  static VerifyingSource make(const Dataset& dataset, Verify verify,
                              SourceKind kind = SourceKind::scatter, bool direct_io = false) {
    SelectedSource selected =
        select_source(internal::Access::impl(dataset), internal::Access::impl(dataset)->leading,
                      {.kind = kind, .group_samples = kChunk, .direct_io = direct_io});
    return {internal::Access::impl(dataset), verify, std::move(selected.source), selected.bytes};
  }

  ReadCost place(const ChunkSource& source, std::int64_t first_row, std::int64_t num_rows,
                 std::uint32_t row) const {
    return place(source, {.first_row = first_row, .num_rows = num_rows}, {row});
  }
  ReadCost place(const ChunkSource& source, const RowGroup& group,
                 const std::vector<std::uint32_t>& rows) const {
    const std::int64_t bytes = file_.sample_bytes();
    return test::place_rows(source, group, rows, bytes,
                            [&](std::int64_t row) { return test::image(row, bytes); });
  }

  /// The file as h5repack rewrites it, attributes and all; empty if that program is missing.
  [[nodiscard]] std::string repacked(const std::string& arguments) const {
    const std::string path = scratch_.file("repacked.h5");
    const std::string command =
        "h5repack " + arguments + " '" + path_ + "' '" + path + "' 2> /dev/null";
    return std::system(command.c_str()) == 0 ? path : "";
  }

  test::ScratchFolder scratch_;
  std::string path_ = scratch_.file("pictures.h5");
  test::PackedFile file_{.num_samples = 30, .chunk_samples = kChunk};
};

TEST_F(VerifyingSourceTest, DamageIsAnErrorOfItsChunkAndNoOther) {
  test::damage_image(path_, 13);
  const Dataset dataset = Dataset::open(path_);
  for (const Verify verify : {Verify::first_epoch, Verify::always}) {
    for (const SourceKind kind : {SourceKind::scatter, SourceKind::mapped, SourceKind::hdf5}) {
      const VerifyingSource source = make(dataset, verify, kind);
      place(source, 0, kChunk, 3);
      place(source, 24, 6, 5);
      // Row 8 itself is whole; the chunk is not.
      for (int read = 0; read < 2; ++read) {
        expect_error(ErrorCode::digest_mismatch,
                     {path_, "chunk 1 (rows 8 to 15) of images", "digest"},
                     [&] { place(source, 8, kChunk, 0); });
      }
    }
  }
}

TEST_F(VerifyingSourceTest, RowsThatMatchAreInTheirPlacesAllTheSame) {
  test::damage_image(path_, 13);
  test::damage_image(path_, 17);
  test::damage_image(path_, 18);
  const Dataset dataset = Dataset::open(path_);
  for (const SourceKind kind : {SourceKind::scatter, SourceKind::mapped, SourceKind::hdf5}) {
    const VerifyingSource source = make(dataset, Verify::first_epoch, kind);
    const auto row_bytes = static_cast<std::size_t>(file_.sample_bytes());
    std::vector<std::byte> memory(16 * row_bytes);
    std::vector<RowTarget> targets;
    for (std::uint32_t row = 0; row < 16; ++row) {
      targets.push_back({.row = row, .target = memory.data() + row * row_bytes});
    }
    try {
      (void)source.place({.first_row = 8, .num_rows = 16}, targets, {});
      FAIL() << "nothing was noticed";
    } catch (const DamagedRows& error) {
      EXPECT_EQ(error.rows(), (std::vector<RowRange>{{13, 14}, {17, 19}}));
      const std::string message = error.what();
      EXPECT_NE(message.find("sample 13 does not match"), std::string::npos) << message;
      EXPECT_NE(message.find("samples 17 to 18 do not match"), std::string::npos) << message;
    }
    for (std::int64_t row = 8; row < 24; ++row) {
      if (row == 13 || row == 17 || row == 18) continue;
      const auto expected = test::image(row, file_.sample_bytes());
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(),
                             memory.begin() + (row - 8) * file_.sample_bytes()))
          << row;
    }
  }
}

TEST_F(VerifyingSourceTest, GroupsSmallerThanAChunkAreCheckedByTheirWholeChunk) {
  test::damage_image(path_, 13);
  const Dataset dataset = Dataset::open(path_);
  const VerifyingSource source = make(dataset, Verify::first_epoch);
  place(source, 0, 3, 2);
  expect_error(ErrorCode::digest_mismatch, {"rows 8 to 15"}, [&] { place(source, 9, 3, 0); });
  expect_error(ErrorCode::digest_mismatch, {"rows 8 to 15"}, [&] { place(source, 6, 3, 2); });
  place(source, 6, 3, 1);
}

TEST_F(VerifyingSourceTest, AlwaysSeesWhatHappenedAfterTheFirstRead) {
  const Dataset dataset = Dataset::open(path_);
  const VerifyingSource once = make(dataset, Verify::first_epoch);
  const VerifyingSource always = make(dataset, Verify::always);
  place(once, 8, kChunk, 0);
  place(always, 8, kChunk, 0);
  test::damage_image(path_, 13);
  place(once, 8, kChunk, 0);
  expect_error(ErrorCode::digest_mismatch, {"rows 8 to 15"}, [&] { place(always, 8, kChunk, 0); });
}

TEST_F(VerifyingSourceTest, AFileWithoutDigestsIsRefused) {
  const std::string foreign = test::h5py_file(scratch_, "whole_chunks");
  const Dataset dataset = Dataset::open(foreign);
  expect_error(ErrorCode::unsupported, {foreign, "no digests", "verify"},
               [&] { make(dataset, Verify::always); });
}

/// A digest is of a sample, however it is stored by now; libhdf5 reads what we do not.
TEST_F(VerifyingSourceTest, ChunksThatWereRewrittenAreCompared) {
  if (repacked("").empty()) GTEST_SKIP() << "no h5repack";
  for (const std::string arguments : {"", "-f images:GZIP=1", "-f images:SHUF -f images:GZIP=9",
                                      "-f images:NBIT", "-f images:SOFF=0,IN", "-l images:CONTI"}) {
#if H5_VERSION_GE(1, 14, 5) && !H5_VERSION_GE(2, 0, 0)
    // 1.14.6, and 1.14.5 as Debian patches it, refuse values that take all bits of their type
    // (HDFGroup/hdf5, issue 5861). Others before 2.0 are not told apart from them here.
    if (arguments.find("SOFF") != std::string::npos) continue;
#endif
    const std::string path = repacked(arguments);
    ASSERT_NE(path, "") << arguments;
    const Dataset dataset = Dataset::open(path);
    place(make(dataset, Verify::always, SourceKind::automatic), 8, kChunk, 0);
  }
}

TEST_F(VerifyingSourceTest, FilteredChunksAreComparedWithWhatTheyDecodeTo) {
  const std::string path = repacked("-f images:GZIP=1");
  if (path.empty()) GTEST_SKIP() << "no h5repack";
  {
    const Dataset dataset = Dataset::open(path);
    const VerifyingSource source = make(dataset, Verify::always, SourceKind::automatic);
    for (std::int64_t first = 0; first < dataset.size(); first += kChunk) {
      place(source, first, std::min(kChunk, dataset.size() - first), 0);
    }
  }
  const std::array<std::int64_t, 4> coord = {1, 0, 0, 0};
  const std::int64_t at =
      internal::Access::impl(Dataset::open(path))->leading->index->find(coord).file_offset + 100;
  test::flip_bit(path, at);
  const Dataset dataset = Dataset::open(path);
  const VerifyingSource source = make(dataset, Verify::always, SourceKind::automatic);
  place(source, 0, kChunk, 0);
  EXPECT_THROW(place(source, kChunk, kChunk, 0), Error);
}

TEST_F(VerifyingSourceTest, WhatIsHashedIsWhatIsDelivered) {
  const Dataset dataset = Dataset::open(path_);
  const VerifyingSource source = make(dataset, Verify::always, SourceKind::mapped);
  // One read: the chunk. The wrapped source is not asked as long as there is something to compare.
  const ReadCost cost = place(source, 8, kChunk, 3);
  EXPECT_EQ(cost.bytes_read, kChunk * file_.sample_bytes());
  EXPECT_GT(cost.decode_seconds, 0);
  const VerifyingSource once = make(dataset, Verify::first_epoch, SourceKind::scatter);
  EXPECT_EQ(place(once, 8, kChunk, 3).bytes_read, kChunk * file_.sample_bytes());
  EXPECT_EQ(place(once, 8, kChunk, 3).bytes_read, file_.sample_bytes());
}

TEST_F(VerifyingSourceTest, GoesRoundThePageCacheWithItsSource) {
  // Chunks of several direct pieces, rows that straddle them.
  file_ = {.num_samples = 16, .height = 700, .width = 701, .channels = 3, .chunk_samples = kChunk};
  const std::string path = scratch_.file("large.h5");
  test::write_packed(path, file_);
  const Dataset dataset = Dataset::open(path);
  const std::int64_t chunk_bytes = kChunk * file_.sample_bytes();
  for (const bool direct_io : {false, true}) {
    const VerifyingSource source = make(dataset, Verify::always, SourceKind::scatter, direct_io);
    const int fd = io::as_local_file(*internal::Access::impl(dataset)->bytes)->fd();
    const auto file_bytes =
        static_cast<std::size_t>(internal::Access::impl(dataset)->bytes->size());
    test::drop_from_cache(fd);
    const bool dropped = test::cached_bytes(fd, file_bytes) == 0;
    const RowGroup all{.first_row = 0, .num_rows = 16};
    EXPECT_GE(place(source, all, test::all_rows(all)).bytes_read, 2 * chunk_bytes);
    if (dropped && direct_io && io::open_direct(internal::Access::impl(dataset)->bytes)) {
      // Labels and digests alone come through it.
      EXPECT_LE(test::cached_bytes(fd, file_bytes), std::size_t{32} << 10);
    }
  }
}

TEST_F(VerifyingSourceTest, AReadThatFailsNamesTheChunk) {
  const Dataset dataset = Dataset::open(path_);
  const VerifyingSource source = make(dataset, Verify::always);
  const std::int64_t offset = *internal::Access::impl(dataset)->leading->linear_offset;
  std::filesystem::resize_file(
      path_, static_cast<std::uintmax_t>(offset + 2 * kChunk * file_.sample_bytes() + 1));
  expect_error(ErrorCode::corrupt_data, {path_, "chunk 2 (rows 16 to 23) of images"},
               [&] { place(source, 16, kChunk, 0); });
}

}  // namespace
}  // namespace chunkio::sources
