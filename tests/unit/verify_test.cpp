#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <stop_token>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <chunkio/dataset.hpp>
#include <chunkio/verify.hpp>

#include "cached_pages.hpp"
#include "errors.hpp"
#include "h5/dataset_impl.hpp"
#include "h5_files.hpp"
#include "io/range_reader.hpp"
#include "pixels.hpp"
#include "scratch.hpp"

namespace chunkio {
namespace {

using test::expect_error;

/// A packed file whose stored bytes can be changed one by one.
class StoredPixels {
 public:
  StoredPixels(const std::string& folder_file, const test::PackedFile& file) : path_(folder_file) {
    test::write_packed(path_, file);
    const Dataset dataset = Dataset::open(path_);
    offset_ = *dataset.impl()->images->linear_offset;
    chunk_bytes_ = file.chunk_samples * file.sample_bytes();
    num_chunks_ = dataset.info().num_chunks;
  }

  /// Flips `bits` of one byte; twice is as before.
  void flip(std::int64_t chunk, std::int64_t byte, int bits) const {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    const std::int64_t at = offset_ + chunk * chunk_bytes_ + byte;
    file.seekg(at);
    const int value = file.get();
    file.seekp(at);
    file.put(static_cast<char>(value ^ bits));
    ASSERT_TRUE(file.flush());
  }

  [[nodiscard]] std::vector<std::int64_t> damaged(std::int64_t threads = 0) const {
    const VerifyResult result = verify_chunks(Dataset::open(path_), {.num_threads = threads});
    EXPECT_EQ(result.num_chunks, num_chunks_);
    std::vector<std::int64_t> chunks;
    for (const DamagedChunk& chunk : result.damaged) chunks.push_back(chunk.chunk);
    return chunks;
  }

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::int64_t num_chunks() const { return num_chunks_; }
  [[nodiscard]] std::int64_t chunk_bytes() const { return chunk_bytes_; }

 private:
  std::string path_;
  std::int64_t offset_ = 0;
  std::int64_t chunk_bytes_ = 0;
  std::int64_t num_chunks_ = 0;
};

using Chunks = std::vector<std::int64_t>;

TEST(Verify, AnIntactFileIsReadOnceAndHasNoDamage) {
  const test::ScratchFolder scratch;
  const StoredPixels pixels(scratch.file("a.h5"), {.num_samples = 100, .chunk_samples = 7});
  std::atomic<std::int64_t> progress = 0;
  const VerifyResult result = verify_chunks(
      Dataset::open(pixels.path()),
      {.num_threads = 3, .on_progress = [&](std::int64_t chunks) { progress += chunks; }});
  EXPECT_EQ(result.num_chunks, 15);
  EXPECT_GE(result.bytes_read, 15 * pixels.chunk_bytes());
  EXPECT_LE(result.bytes_read, 15 * pixels.chunk_bytes() + 2 * 4096);
  EXPECT_TRUE(result.damaged.empty());
  EXPECT_EQ(progress, 15);
}

/// Rows of the last chunk beyond the dataset do not count: they are no samples.
TEST(Verify, AnyByteOfAnySampleNamesThatSampleAndNoOther) {
  const test::ScratchFolder scratch;
  const StoredPixels pixels(
      scratch.file("a.h5"),
      {.num_samples = 11, .height = 2, .width = 2, .channels = 1, .chunk_samples = 4});
  std::mt19937_64 random(test::test_seed());
  for (std::int64_t chunk = 0; chunk < pixels.num_chunks(); ++chunk) {
    for (std::int64_t byte = 0; byte < pixels.chunk_bytes(); ++byte) {
      const int bits = static_cast<int>(random() % 255 + 1);
      const std::int64_t sample = chunk * 4 + byte / 4;
      pixels.flip(chunk, byte, bits);
      const VerifyResult result = verify_chunks(Dataset::open(pixels.path()));
      pixels.flip(chunk, byte, bits);
      if (sample >= 11) {
        ASSERT_TRUE(result.damaged.empty()) << "byte " << byte << " of chunk " << chunk;
        continue;
      }
      ASSERT_EQ(result.damaged.size(), 1U) << "byte " << byte << ", bits " << bits;
      ASSERT_EQ(result.damaged.front().chunk, chunk);
      ASSERT_EQ(result.damaged.front().damaged_rows,
                (std::vector<RowRange>{{sample, sample + 1}}));
    }
  }
  EXPECT_EQ(pixels.damaged(), Chunks{});
}

struct Size {
  std::int64_t num_samples, height, width, chunk_samples;
};

class VerifySizeTest : public testing::TestWithParam<Size> {};

/// Chunks read in runs, one by one, and in several pieces each.
TEST_P(VerifySizeTest, RandomDamageIsFoundByAnyNumberOfThreads) {
  const test::ScratchFolder scratch;
  const Size& size = GetParam();
  const StoredPixels pixels(scratch.file("a.h5"), {.num_samples = size.num_samples,
                                                   .height = size.height,
                                                   .width = size.width,
                                                   .channels = 3,
                                                   .chunk_samples = size.chunk_samples});
  std::mt19937_64 random(test::test_seed());
  for (int round = 0; round < 6; ++round) {
    Chunks expected;
    for (std::int64_t chunk = 0; chunk < pixels.num_chunks(); ++chunk) {
      if (random() % 3 != 0) continue;
      expected.push_back(chunk);
      pixels.flip(
          chunk,
          static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(pixels.chunk_bytes())),
          1 << random() % 8);
    }
    for (const std::int64_t threads : {1, 2, 16}) ASSERT_EQ(pixels.damaged(threads), expected);
    // All of it back: the next round damages other bytes, maybe of the same chunks.
    test::write_packed(scratch.file("whole.h5"), {.num_samples = size.num_samples,
                                                  .height = size.height,
                                                  .width = size.width,
                                                  .channels = 3,
                                                  .chunk_samples = size.chunk_samples});
    std::filesystem::rename(scratch.file("whole.h5"), pixels.path());
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, VerifySizeTest,
                         testing::Values(Size{5000, 8, 8, 3}, Size{40, 100, 101, 3},
                                         Size{7, 900, 1001, 2}));

TEST(Verify, DamageIsDescribed) {
  const test::ScratchFolder scratch;
  const StoredPixels pixels(scratch.file("a.h5"), {.num_samples = 30, .chunk_samples = 8});
  pixels.flip(3, 0, 1);
  const VerifyResult result = verify_chunks(Dataset::open(pixels.path()));
  ASSERT_EQ(result.damaged.size(), 1U);
  const DamagedChunk& damaged = result.damaged.front();
  EXPECT_EQ(damaged.rows, (RowRange{24, 30}));
  EXPECT_EQ(damaged.code, ErrorCode::digest_mismatch);
  EXPECT_NE(damaged.reason.find("chunk 3 (rows 24 to 29) of images in " + pixels.path()),
            std::string::npos)
      << damaged.reason;
}

TEST(Verify, GoesRoundThePageCache) {
  const test::ScratchFolder scratch;
  const StoredPixels pixels(
      scratch.file("a.h5"),
      {.num_samples = 64, .height = 300, .width = 300, .channels = 3, .chunk_samples = 10});
  const Dataset dataset = Dataset::open(pixels.path());
  const int fd = dataset.impl()->descriptor.get();
  const auto size = static_cast<std::size_t>(dataset.impl()->file_bytes);
  test::drop_from_cache(fd);
  if (test::cached_bytes(fd, size) > 0) GTEST_SKIP() << "this file system keeps its pages";
  EXPECT_TRUE(verify_chunks(dataset).damaged.empty());
  // Metadata and the edges of runs may be there.
  EXPECT_LT(test::cached_bytes(fd, size), size / 4);
}

TEST(Verify, AFileThatIsCutMeanwhileIsChangedRatherThanDamaged) {
  const test::ScratchFolder scratch;
  const StoredPixels pixels(scratch.file("a.h5"), {.num_samples = 100, .chunk_samples = 7});
  const Dataset dataset = Dataset::open(pixels.path());
  std::filesystem::resize_file(pixels.path(), std::filesystem::file_size(pixels.path()) / 2);
  expect_error(ErrorCode::corrupt_data, {pixels.path(), "changed while being read"},
               [&] { (void)verify_chunks(dataset); });
}

TEST(Verify, StopsWhenAsked) {
  const test::ScratchFolder scratch;
  const StoredPixels pixels(scratch.file("a.h5"), {.num_samples = 100, .chunk_samples = 7});
  std::stop_source stop;
  stop.request_stop();
  expect_error(ErrorCode::cancelled, {pixels.path(), "stopped"}, [&] {
    (void)verify_chunks(Dataset::open(pixels.path()), {.stop = stop.get_token()});
  });
}

TEST(Verify, WithoutDigestsThereIsNothingToCompare) {
  const test::ScratchFolder scratch;
  const Dataset foreign = Dataset::open(test::h5py_file(scratch, "whole_chunks"));
  EXPECT_EQ(why_not_verifiable(foreign), "it has no digests");
  expect_error(ErrorCode::unsupported, {foreign.info().path, "no digests", "pack it"},
               [&] { (void)verify_chunks(foreign); });
}

TEST(Verify, ChunksInAnotherPlaceAreComparedAndRewrittenOnesAreNot) {
  const test::ScratchFolder scratch;
  const StoredPixels pixels(scratch.file("a.h5"), {.num_samples = 100, .chunk_samples = 7});
  const auto repacked = [&](const std::string& arguments) {
    const std::string path = scratch.file("b.h5");
    std::filesystem::remove(path);
    const std::string command =
        "h5repack " + arguments + " '" + pixels.path() + "' '" + path + "' 2> /dev/null";
    return std::system(command.c_str()) == 0 ? path : std::string();
  };
  pixels.flip(2, 9, 1);
  const std::string moved = repacked("");
  if (moved.empty()) GTEST_SKIP() << "no h5repack";
  const VerifyResult result = verify_chunks(Dataset::open(moved));
  ASSERT_EQ(result.damaged.size(), 1U);
  EXPECT_EQ(result.damaged.front().chunk, 2);

  // A digest is of the pixels, whatever filter they are behind.
  const VerifyResult deflated = verify_chunks(Dataset::open(repacked("-f images:GZIP=1")));
  ASSERT_EQ(deflated.damaged.size(), 1U);
  EXPECT_EQ(deflated.damaged.front().chunk, 2);
  EXPECT_EQ(deflated.damaged.front().code, ErrorCode::digest_mismatch);

  const Dataset foreign = Dataset::open(repacked("-f images:NBIT"));
  EXPECT_EQ(why_not_verifiable(foreign),
            "its chunks were rewritten since it was packed (nbit filter)");
  std::string chunk = Dataset::open(pixels.path()).info().sample_shape().to_string();  // "[H, W, C]"
  std::erase_if(chunk, [](char c) { return c == '[' || c == ']' || c == ' '; });
  std::replace(chunk.begin(), chunk.end(), ',', 'x');
  for (const auto& [layout, reason] : {std::pair<std::string, std::string>("CONTI", "no chunks"),
                                       {"CHUNK=3x" + chunk, "other chunks"}}) {
    const Dataset rewritten = Dataset::open(repacked("-l images:" + layout));
    EXPECT_EQ(why_not_verifiable(rewritten),
              "its chunks were rewritten since it was packed (" + reason + ")");
  }
}

TEST(Verify, RefusesImpossibleThreadCounts) {
  const test::ScratchFolder scratch;
  const StoredPixels pixels(scratch.file("a.h5"), {});
  for (const std::int64_t threads : {-1, 1025}) {
    expect_error(ErrorCode::invalid_argument, {"num_threads"}, [&] {
      (void)verify_chunks(Dataset::open(pixels.path()), {.num_threads = threads});
    });
  }
}

}  // namespace
}  // namespace chunkio
