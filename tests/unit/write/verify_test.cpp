#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <stop_token>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <hdf5.h>

#include <chunkio/dataset.hpp>
#include <chunkio/dataset_writer.hpp>
#include <chunkio/verify.hpp>

#include "base/access.hpp"
#include "h5/attributes.hpp"
#include "h5/dataset_impl.hpp"
#include "h5/description_reader.hpp"
#include "h5/library.hpp"
#include "io/range_reader.hpp"
#include "support/cached_pages.hpp"
#include "support/damage.hpp"
#include "support/errors.hpp"
#include "support/h5_files.hpp"
#include "support/pixels.hpp"
#include "support/scratch.hpp"

namespace chunkio {
namespace {

using test::expect_error;

/// A packed file whose stored bytes can be changed one by one.
class StoredPixels {
 public:
  StoredPixels(const std::string& path, const test::PackedFile& file)
      : StoredPixels((test::write_packed(path, file), path)) {}

  /// An existing file.
  explicit StoredPixels(std::string path) : path_(std::move(path)) {
    const Dataset dataset = Dataset::open(path_);
    const DatasetInfo& info = dataset.info();
    offset_ = *internal::Access::impl(dataset)->leading->linear_offset;
    chunk_bytes_ = info.stored.chunk_shape[0] * info.sample_bytes();
    num_chunks_ = info.num_chunks;
  }

  /// Flips `bits` of one byte; twice is as before.
  void flip(std::int64_t chunk, std::int64_t byte, int bits) const {
    test::flip_bit(path_, offset_ + chunk * chunk_bytes_ + byte, bits);
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
      const DamagedChunk& damaged = result.damaged.front();
      ASSERT_EQ(damaged.chunk, chunk);
      ASSERT_EQ(damaged.rows, (RowRange{chunk * 4, std::min<std::int64_t>(chunk * 4 + 4, 11)}));
      ASSERT_EQ(damaged.damaged_rows, (std::vector<RowRange>{{sample, sample + 1}}));
      ASSERT_EQ(damaged.code, ErrorCode::digest_mismatch);
      const std::string named =
          "chunk " + std::to_string(chunk) + " (rows " + std::to_string(damaged.rows.begin) +
          " to " + std::to_string(damaged.rows.end - 1) + ") of images in " + pixels.path();
      ASSERT_NE(damaged.reason.find(named), std::string::npos) << damaged.reason;
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
      // Rows behind the last one are no samples.
      const std::int64_t rows =
          std::min(size.chunk_samples, size.num_samples - chunk * size.chunk_samples);
      const auto bytes = static_cast<std::uint64_t>(rows * size.height * size.width * 3);
      pixels.flip(chunk, static_cast<std::int64_t>(random() % bytes), 1 << random() % 8);
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

TEST(Verify, BypassesThePageCache) {
  const test::ScratchFolder scratch;
  const StoredPixels pixels(
      scratch.file("a.h5"),
      {.num_samples = 64, .height = 300, .width = 300, .channels = 3, .chunk_samples = 10});
  const Dataset dataset = Dataset::open(pixels.path());
  const int fd = io::as_local_file(*internal::Access::impl(dataset)->bytes)->fd();
  const auto size = static_cast<std::size_t>(internal::Access::impl(dataset)->bytes->size());
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

TEST(Verify, HoweverImagesAreStoredByNowTheyAreCompared) {
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

  std::string chunk =
      Dataset::open(pixels.path()).info().sample_shape().to_string();  // "[H, W, C]"
  std::erase_if(chunk, [](char c) { return c == '[' || c == ']' || c == ' '; });
  std::replace(chunk.begin(), chunk.end(), ',', 'x');
  for (const std::string& how :
       {std::string("-f images:NBIT"), std::string("-l images:CONTI"), "-l images:CHUNK=3x" + chunk,
        std::string("-l images:CHUNK=4x1x1x1"), std::string("-f sample_digests:GZIP=1"),
        std::string("-f labels:GZIP=1")}) {
    const VerifyResult rewritten = verify_chunks(Dataset::open(repacked(how)));
    ASSERT_EQ(rewritten.damaged.size(), 1U) << how;
    EXPECT_EQ(rewritten.damaged.front().damaged_rows, (std::vector<RowRange>{{14, 15}})) << how;
    EXPECT_EQ(rewritten.damaged.front().code, ErrorCode::digest_mismatch) << how;
  }
}

/// Digests of version 1 are of chunks with all that is in them, also behind the last sample.
TEST(Verify, AFileOfVersionOneNamesAllRowsOfADamagedChunk) {
  const test::ScratchFolder scratch;
  std::filesystem::copy_file(CHUNKIO_TESTS_DIR "/golden/format/v1.h5", scratch.file("v1.h5"));
  const StoredPixels pixels(scratch.file("v1.h5"));
  ASSERT_EQ(pixels.num_chunks(), 3);
  pixels.flip(1, 100, 4);                         // Of row 4.
  pixels.flip(2, pixels.chunk_bytes() - 1, 128);  // Of the room for row 8.
  const std::vector<DamagedChunk> damaged = verify_chunks(Dataset::open(pixels.path())).damaged;
  ASSERT_EQ(damaged.size(), 2U);
  EXPECT_EQ(damaged[0].chunk, 1);
  EXPECT_EQ(damaged[0].damaged_rows, (std::vector<RowRange>{{3, 6}}));
  EXPECT_EQ(damaged[1].chunk, 2);
  EXPECT_EQ(damaged[1].damaged_rows, (std::vector<RowRange>{{6, 7}}));
  for (const DamagedChunk& chunk : damaged) EXPECT_EQ(chunk.code, ErrorCode::digest_mismatch);
}

/// A packed file that another program changed.
template <class Change>
std::string altered(const test::ScratchFolder& scratch, Change change) {
  const std::string path = scratch.file("altered.h5");
  std::filesystem::remove(path);
  test::write_packed(path, {.num_samples = 20, .chunk_samples = 7});
  const auto guard = h5::Library::lock();
  const h5::FileId file(H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT));
  change(file.get());
  return path;
}

/// Writes element `at` of a dataset of 8-byte numbers.
void set_number(hid_t file, const char* name, std::size_t at,
                std::uint64_t (*change)(std::uint64_t)) {
  const h5::DatasetId dataset(H5Dopen2(file, name, H5P_DEFAULT));
  std::vector<std::uint64_t> values(20);
  ASSERT_GE(H5Dread(dataset.get(), H5T_NATIVE_UINT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()),
            0);
  values[at] = change(values[at]);
  ASSERT_GE(
      H5Dwrite(dataset.get(), H5T_NATIVE_UINT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
}

TEST(Verify, AnotherLabelOrDigestIsDamageOfItsSample) {
  const test::ScratchFolder scratch;
  for (const char* name : {"labels", "sample_digests"}) {
    const std::string path = altered(scratch, [&](hid_t file) {
      set_number(file, name, 13, [](std::uint64_t value) { return value ^ 1; });
    });
    const VerifyResult result = verify_chunks(Dataset::open(path));
    ASSERT_EQ(result.damaged.size(), 1U) << name;
    EXPECT_EQ(result.damaged.front().chunk, 1) << name;
    EXPECT_EQ(result.damaged.front().damaged_rows, (std::vector<RowRange>{{13, 14}})) << name;
    EXPECT_NE(result.damaged.front().reason.find("sample 13 does not match"), std::string::npos)
        << result.damaged.front().reason;
  }
}

TEST(Verify, ADatasetThatIsCoveredAndMissingIsOneErrorAndAFurtherOneIsNone) {
  const test::ScratchFolder scratch;
  const std::string path =
      altered(scratch, [](hid_t file) { ASSERT_GE(H5Ldelete(file, "labels", H5P_DEFAULT), 0); });
  expect_error(ErrorCode::corrupt_data, {path, "cover labels", "missing"},
               [&] { (void)verify_chunks(Dataset::open(path)); });
  const std::string more = altered(scratch, [](hid_t file) {
    const hsize_t n = 20;
    const h5::SpaceId space(H5Screate_simple(1, &n, nullptr));
    const h5::DatasetId added(H5Dcreate2(file, "added", H5T_NATIVE_INT32, space.get(), H5P_DEFAULT,
                                         H5P_DEFAULT, H5P_DEFAULT));
    ASSERT_TRUE(added);
  });
  EXPECT_TRUE(verify_chunks(Dataset::open(more)).damaged.empty());
}

TEST(Verify, DigestsOfAnAlgorithmOfTheFutureAreNone) {
  const test::ScratchFolder scratch;
  const std::string path = altered(scratch, [](hid_t file) {
    const h5::DatasetId digests(H5Dopen2(file, "sample_digests", H5P_DEFAULT));
    ASSERT_GE(H5Adelete(digests.get(), "algorithm"), 0);
    h5::write_text(digests.get(), "algorithm", "XXH9-512", "the file");
  });
  const Dataset dataset = Dataset::open(path);
  EXPECT_EQ(why_not_verifiable(dataset), "it has no digests");
  EXPECT_TRUE(dataset.info().digests_cover.empty());
  EXPECT_FALSE(dataset.find_field("sample_digests"));
}

TEST(Verify, DigestsOfAnotherNumberOfSamplesAreRefused) {
  const test::ScratchFolder scratch;
  const std::string path = altered(scratch, [](hid_t file) {
    ASSERT_GE(H5Ldelete(file, "sample_digests", H5P_DEFAULT), 0);
    const hsize_t n = 19;
    const h5::SpaceId space(H5Screate_simple(1, &n, nullptr));
    const h5::DatasetId digests(H5Dcreate2(file, "sample_digests", H5T_NATIVE_UINT64, space.get(),
                                           H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    const std::vector<std::string> names = {"images", "labels"};
    h5::write_covered_names(digests.get(), names, "the file");
  });
  expect_error(ErrorCode::corrupt_data, {path, "sample_digests uint64 [19]", "20 samples"},
               [&] { Dataset::open(path); });
}

/// Chunks of one byte: the list of chunks is longer than any that an attribute may hold.
class ManyChunks : public testing::TestWithParam<std::int64_t> {
 protected:
  /// Writes chunks [begin, end), of GetParam().
  static void write(DatasetWriter& writer, std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::byte byte = byte_of(i);
      writer.write_chunk(i, std::span(&byte, 1));
    }
  }
  [[nodiscard]] DatasetWriter make_writer(const WriterOptions& options) const {
    DatasetSpec spec;
    spec.num_samples = GetParam();
    spec.height = spec.width = spec.channels = 1;
    spec.channel_order = "gray";
    return {path_, spec, options};
  }
  void expect_complete() const {
    const std::int64_t n = GetParam();
    const Dataset dataset = Dataset::open(path_);
    EXPECT_EQ(dataset.info().num_chunks, n);
    EXPECT_TRUE(verify_chunks(dataset).damaged.empty());
    std::vector<std::byte> last(3);
    dataset.read_images(n - 3, 3, last);
    EXPECT_EQ(last, (std::vector<std::byte>{byte_of(n - 3), byte_of(n - 2), byte_of(n - 1)}));
  }

 private:
  static std::byte byte_of(std::int64_t i) { return static_cast<std::byte>(i * 31 % 251); }

  const test::ScratchFolder scratch_;
  const std::string path_ = scratch_.file("many.h5");
};

TEST_P(ManyChunks, AreWrittenReadAndCompared) {
  DatasetWriter writer = make_writer({.chunk_samples = 1});
  ASSERT_EQ(writer.num_chunks(), GetParam());
  write(writer, 0, GetParam());
  writer.close();
  expect_complete();
}

TEST_P(ManyChunks, AreWrittenInTwoRuns) {
  const std::int64_t first = GetParam() - 5;
  {
    DatasetWriter writer = make_writer({.chunk_samples = 1, .identity = "{}"});
    write(writer, 0, first);
    writer.commit();
  }
  DatasetWriter writer = make_writer({.chunk_samples = 1, .identity = "{}", .resume = true});
  ASSERT_EQ(std::ssize(writer.resumed()), first);
  write(writer, first, GetParam());
  writer.close();
  expect_complete();
}

/// CHUNKIO_TEST_CHUNKS asks for another number of them.
std::vector<std::int64_t> counts() {
  if (const char* count = std::getenv("CHUNKIO_TEST_CHUNKS")) return {std::stoll(count)};
  return {(1 << 20) - 1, 1 << 20, (1 << 20) + 1};
}
INSTANTIATE_TEST_SUITE_P(Counts, ManyChunks, testing::ValuesIn(counts()));

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
