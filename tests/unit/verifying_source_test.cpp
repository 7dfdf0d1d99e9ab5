#include "io/verifying_source.hpp"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "errors.hpp"
#include "h5_files.hpp"
#include "io/source_select.hpp"
#include "pixels.hpp"
#include "scratch.hpp"

namespace chunkio::io {
namespace {

using test::expect_error;

class VerifyingSourceTest : public testing::Test {
 protected:
  static constexpr std::int64_t kChunk = 8;

  VerifyingSourceTest() { test::write_packed(path_, file_); }

  /// Flips a bit of `sample` and leaves size and times of the file alone.
  void damage(std::int64_t sample) const {
    const auto time = std::filesystem::last_write_time(path_);
    const std::int64_t offset = *Dataset::open(path_).impl()->images->linear_offset;
    auto bytes = test::read_bytes(path_);
    bytes[static_cast<std::size_t>(offset + sample * file_.sample_bytes() + 5)] ^= 1;
    // In place, so that who has it open sees it.
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    file.close();
    std::filesystem::last_write_time(path_, time);
  }

  static VerifyingSource make(const Dataset& dataset, Verify verify,
                              SourceKind kind = SourceKind::scatter) {
    return {dataset.impl(), verify,
            select_source(dataset.impl(), dataset.impl()->images,
                          {.kind = kind, .group_samples = kChunk})
                .source};
  }

  void place(const ChunkSource& source, std::int64_t first_row, std::int64_t num_rows,
             std::uint32_t row) const {
    std::vector<std::byte> picture(static_cast<std::size_t>(file_.sample_bytes()));
    const RowTarget target{.row = row, .target = picture.data()};
    (void)source.place({.first_row = first_row, .num_rows = num_rows}, std::span(&target, 1),
                       std::stop_token());
    EXPECT_EQ(picture, test::picture(first_row + row, file_.sample_bytes()));
  }

  test::ScratchFolder scratch_;
  std::string path_ = scratch_.file("pictures.h5");
  test::PackedFile file_{.num_samples = 30, .chunk_samples = kChunk};
};

TEST_F(VerifyingSourceTest, DamageIsAnErrorOfItsChunkAndNoOther) {
  damage(13);
  const Dataset dataset = Dataset::open(path_);
  for (const Verify verify : {Verify::first_epoch, Verify::always}) {
    for (const SourceKind kind : {SourceKind::scatter, SourceKind::mapped, SourceKind::hdf5}) {
      const VerifyingSource source = make(dataset, verify, kind);
      place(source, 0, kChunk, 3);
      place(source, 24, 6, 5);
      // Row 8 itself is whole; the chunk is not.
      for (int visit = 0; visit < 2; ++visit) {
        expect_error(ErrorCode::digest_mismatch,
                     {path_, "chunk 1 (rows 8 to 15) of images", "digest"},
                     [&] { place(source, 8, kChunk, 0); });
      }
    }
  }
}

TEST_F(VerifyingSourceTest, GroupsSmallerThanAChunkAreCheckedByTheirWholeChunk) {
  damage(13);
  const Dataset dataset = Dataset::open(path_);
  const VerifyingSource source = make(dataset, Verify::first_epoch);
  place(source, 0, 3, 2);
  expect_error(ErrorCode::digest_mismatch, {"rows 8 to 15"}, [&] { place(source, 9, 3, 0); });
  expect_error(ErrorCode::digest_mismatch, {"rows 8 to 15"}, [&] { place(source, 6, 3, 2); });
  place(source, 6, 3, 1);
}

TEST_F(VerifyingSourceTest, AlwaysSeesWhatHappenedAfterTheFirstVisit) {
  const Dataset dataset = Dataset::open(path_);
  const VerifyingSource once = make(dataset, Verify::first_epoch);
  const VerifyingSource always = make(dataset, Verify::always);
  place(once, 8, kChunk, 0);
  place(always, 8, kChunk, 0);
  damage(13);
  place(once, 8, kChunk, 0);
  expect_error(ErrorCode::digest_mismatch, {"rows 8 to 15"}, [&] { place(always, 8, kChunk, 0); });
}

TEST_F(VerifyingSourceTest, AFileWithoutDigestsIsRefused) {
  const std::string foreign = test::h5py_file(scratch_, "whole_chunks");
  const Dataset dataset = Dataset::open(foreign);
  expect_error(ErrorCode::unsupported, {foreign, "no digests", "verify"},
               [&] { make(dataset, Verify::always); });
}

}  // namespace
}  // namespace chunkio::io
