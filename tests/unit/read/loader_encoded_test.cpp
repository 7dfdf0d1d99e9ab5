// Loaders of files that encoded images lead: they are decoded into their rows of the batch.
#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <chunkio/loader.hpp>

#include "support/encoded_files.hpp"
#include "support/errors.hpp"
#include "support/row_lists.hpp"
#include "support/scratch.hpp"

namespace chunkio {
namespace {

using test::all_rows;
using test::encoded_file;
using test::encoded_image;
using test::encoded_pixels;
using test::expect_error;
using test::Rows;
using test::sorted;

constexpr std::int64_t kRows = 200;
/// As stored.
constexpr DecodeOptions kWhole{.height = 6, .width = 8, .crop = CropMode::whole};
constexpr DecodeOptions kRandom{.height = 5, .width = 5, .crop = CropMode::random_resized};

LoaderOptions options() {
  return {.batch_size = 16, .seed = 3, .order = {.window_bytes = 8192}, .io = {.num_threads = 2}};
}

std::vector<std::uint8_t> pixels_of(const Batch& batch, std::size_t row) {
  const auto all = batch.images().values<std::uint8_t>();
  const std::size_t size = all.size() / static_cast<std::size_t>(batch.size());
  return {all.begin() + static_cast<std::ptrdiff_t>(row * size),
          all.begin() + static_cast<std::ptrdiff_t>((row + 1) * size)};
}

/// The rows of a batch, whose pixels and labels must be theirs.
Rows rows_of(const Batch& batch) {
  EXPECT_EQ(batch.images().shape(), (Shape{batch.size(), 6, 8, 3}));
  const auto rows = batch.sample_ids();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(pixels_of(batch, i), encoded_pixels(rows[i]));
    EXPECT_EQ(batch.labels().values<std::int64_t>()[i], rows[i]);
  }
  return {rows.begin(), rows.end()};
}

Rows rows_of(Loader& loader, std::int64_t epoch) {
  Rows rows;
  for (const Batch& batch : loader.epoch(epoch)) {
    const Rows more = rows_of(batch);
    rows.insert(rows.end(), more.begin(), more.end());
  }
  return rows;
}

class LoaderEncodedTest : public ::testing::Test {
 protected:
  [[nodiscard]] Dataset open(const DecodeOptions& decode = kWhole) const {
    return Dataset::open(path_, {.decode = decode});
  }

  test::ScratchFolder folder_;
  std::string path_ = encoded_file(folder_.file("images.h5"), 0, kRows);
};

TEST_F(LoaderEncodedTest, EachImageIsDeliveredOnce) {
  for (const bool direct_io : {false, true}) {
    for (const OrderMode mode : {OrderMode::chunk_shuffled, OrderMode::random}) {
      LoaderOptions wanted = options();
      wanted.io.direct_io = direct_io;
      wanted.order.mode = mode;
      Loader loader(open(), wanted);
      EXPECT_GT(loader.row_groups().num_groups(), 3);
      const Rows rows = rows_of(loader, 0);
      EXPECT_EQ(sorted(rows), all_rows(kRows));
      EXPECT_NE(rows_of(loader, 1), rows);
      EXPECT_GT(loader.stats().decode_seconds, 0);
    }
  }
}

// So that a state holds for any size.
TEST_F(LoaderEncodedTest, TheOrderDoesNotDependOnTheSize) {
  Loader small(open(), options());
  Loader large(open({.height = 40, .width = 40}), options());
  EXPECT_EQ(small.window_groups(), large.window_groups());
  EXPECT_EQ(small.row_groups().group_samples(), large.row_groups().group_samples());
  small.start_epoch(0);
  static_cast<void>(small.next());
  const auto next = small.next();
  Loader resumed(open({.height = 40, .width = 40}), options());
  resumed.restore(small.state());
  static_cast<void>(small.next());
  Loader again(open(), options());
  again.start_epoch(0);
  for (int i = 0; i < 2; ++i) static_cast<void>(again.next());
  const auto third = again.next();
  const auto rows = resumed.next();
  EXPECT_TRUE(std::equal(rows->sample_ids().begin(), rows->sample_ids().end(),
                         third->sample_ids().begin()));
}

TEST_F(LoaderEncodedTest, RandomCropsDependOnSeedEpochAndSampleAlone) {
  const auto crops = [&](std::uint64_t seed, std::int64_t epoch, std::int64_t batch_size) {
    LoaderOptions wanted = options();
    wanted.seed = seed;
    wanted.batch_size = batch_size;
    Loader loader(open(kRandom), wanted);
    std::vector<std::vector<std::uint8_t>> by_row(static_cast<std::size_t>(kRows));
    for (const Batch& batch : loader.epoch(epoch)) {
      for (std::size_t i = 0; i < batch.sample_ids().size(); ++i) {
        by_row[static_cast<std::size_t>(batch.sample_ids()[i])] = pixels_of(batch, i);
      }
    }
    return by_row;
  };
  const auto first = crops(3, 0, 16);
  EXPECT_EQ(crops(3, 0, 7), first);
  EXPECT_NE(crops(3, 1, 16), first);
  EXPECT_NE(crops(4, 0, 16), first);
}

TEST_F(LoaderEncodedTest, SeveralFilesAreOne) {
  encoded_file(folder_.file("part-00000-of-00002.h5"), 0, 90);
  encoded_file(folder_.file("part-00001-of-00002.h5"), 90, kRows - 90);
  const Dataset parts = Dataset::open(folder_.file("part-*-of-00002.h5"), {.decode = kWhole});
  EXPECT_EQ(parts.info().encoded->num_bytes, open().info().encoded->num_bytes);
  EXPECT_EQ(parts.read_encoded(100).bytes, encoded_image(100).bytes);
  Loader loader(parts, options());
  EXPECT_EQ(sorted(rows_of(loader, 0)), all_rows(kRows));
  // The sample ids that crops are drawn from are those of the whole.
  const auto crop_of = [&](const Dataset& dataset) {
    LoaderOptions wanted = options();
    wanted.rows = RowSelection::of(Rows{150});
    Loader one(dataset, wanted);
    one.start_epoch(0);
    return pixels_of(*one.next(), 0);
  };
  EXPECT_EQ(crop_of(Dataset::open(folder_.file("part-*-of-00002.h5"), {.decode = kRandom})),
            crop_of(open(kRandom)));
}

TEST_F(LoaderEncodedTest, ReadImagesGivesTheSamePixels) {
  const Dataset dataset = open();
  std::vector<std::byte> pixels(static_cast<std::size_t>(2 * dataset.info().sample_bytes()));
  dataset.read_images(41, 2, pixels);
  std::vector<std::uint8_t> expected = encoded_pixels(41);
  const std::vector<std::uint8_t> second = encoded_pixels(42);
  expected.insert(expected.end(), second.begin(), second.end());
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(pixels.data());
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), bytes));
}

TEST_F(LoaderEncodedTest, KeptOnTheHostUnlessCropsAreRandom) {
  Loader reading(open(), options());
  EXPECT_EQ(sorted(rows_of(reading, 0)), all_rows(kRows));
  LoaderOptions wanted = options();
  wanted.memory.resident = Resident::host;
  Loader loader(open(), wanted);
  for (const std::int64_t epoch : {0, 1, 2})
    EXPECT_EQ(sorted(rows_of(loader, epoch)), all_rows(kRows));
  // All is read once. Which epoch it counts for is open: the second is read ahead during the first.
  EXPECT_EQ(loader.epoch_stats(0).bytes_read + loader.epoch_stats(1).bytes_read,
            reading.epoch_stats(0).bytes_read);
  EXPECT_EQ(loader.epoch_stats(2).bytes_read, 0);
  EXPECT_FALSE(loader.stats().facts.random_crops);
  EXPECT_TRUE(Loader(open(kRandom), options()).stats().facts.random_crops);
  expect_error(ErrorCode::unsupported, {path_, "random crops", "resident"},
               [&] { Loader(open(kRandom), wanted); });
}

TEST_F(LoaderEncodedTest, WithoutASizeThereIsNoLoader) {
  expect_error(ErrorCode::unsupported, {path_, "decode"},
               [&] { Loader(Dataset::open(path_), options()); });
  expect_error(ErrorCode::unsupported, {path_, "decode"}, [&] {
    std::vector<std::byte> none;
    Dataset::open(path_).read_images(0, 0, none);
  });
  for (const DecodeOptions& wrong :
       {DecodeOptions{.height = 0}, DecodeOptions{.width = 65536},
        DecodeOptions{.shorter_side = 100},
        DecodeOptions{.crop = CropMode::whole, .shorter_side = 256},
        DecodeOptions{.crop = CropMode::random_resized, .ranges = {.min_scale = -1}},
        DecodeOptions{.crop = CropMode::random_resized, .ranges = {.min_ratio = 0}}}) {
    EXPECT_NE(test::refusal([&] { static_cast<void>(open(wrong)); }), "");
  }
}

class LoaderDamagedImagesTest : public LoaderEncodedTest {
 protected:
  /// A file with an image that is no image, one that ends early, and one that claims to be larger.
  [[nodiscard]] std::string damaged() const {
    const std::string path = folder_.file("damaged.h5");
    EncodedWriter writer(path, {});
    for (std::int64_t row = 0; row < kRows; ++row) {
      EncodedImage image = encoded_image(row);
      if (row == 30) image.bytes.assign(100, std::byte{7});
      if (row == 77) image.bytes.resize(image.bytes.size() / 2);
      if (row == 160) image.bytes = encoded_image(row, 60, 80).bytes;
      writer.add(image);
    }
    writer.close({test::numbers_field("labels", 0, kRows)});
    return path;
  }
};

TEST_F(LoaderDamagedImagesTest, AreNamedOrSkipped) {
  const Dataset dataset = Dataset::open(damaged(), {.decode = kWhole});
  Loader strict(dataset, options());
  expect_error(ErrorCode::corrupt_data, {dataset.info().path, "image ", "cannot be decoded"},
               [&] { rows_of(strict, 0); });
  LoaderOptions wanted = options();
  wanted.io.on_error = OnError::skip;
  Loader loader(dataset, wanted);
  Rows expected = all_rows(kRows);
  for (const std::int64_t row : {160, 77, 30}) expected.erase(expected.begin() + row);
  for (const std::int64_t epoch : {0, 1}) EXPECT_EQ(sorted(rows_of(loader, epoch)), expected);
  const std::vector<SkippedRows> skipped = loader.skipped();
  ASSERT_EQ(skipped.size(), 3);
  EXPECT_EQ(skipped[0].first_row, 30);
  EXPECT_EQ(skipped[0].num_rows, 1);
  for (const std::int64_t row : {30, 77, 160}) {
    for (const SkippedRows& one : skipped) {
      const std::string name = "image " + std::to_string(row) + " ";
      EXPECT_EQ(one.reason.find(name) != std::string::npos, one.first_row == row) << one.reason;
    }
  }
  EXPECT_NE(skipped[2].reason.find("60x80"), std::string::npos) << skipped[2].reason;
  std::vector<std::byte> pixels(static_cast<std::size_t>(dataset.info().sample_bytes()));
  expect_error(ErrorCode::corrupt_data, {"image 77", dataset.info().path},
               [&] { dataset.read_images(77, 1, pixels); });
}

TEST_F(LoaderDamagedImagesTest, ManyAreOneShortError) {
  const std::string path = folder_.file("all_damaged.h5");
  {
    EncodedWriter writer(path, {});
    for (std::int64_t row = 0; row < kRows; ++row) {
      EncodedImage image = encoded_image(row);
      image.bytes.assign(100, std::byte{7});
      writer.add(image);
    }
    writer.close({test::numbers_field("labels", 0, kRows)});
  }
  const Dataset dataset = Dataset::open(path, {.decode = kWhole});
  Loader strict(dataset, options());
  std::string message;
  try {
    rows_of(strict, 0);
  } catch (const Error& error) {
    message = error.what();
    EXPECT_EQ(error.code(), ErrorCode::corrupt_data);
  }
  EXPECT_NE(message.find(" more"), std::string::npos) << message;
  EXPECT_LT(message.size(), 2000) << message;
  LoaderOptions wanted = options();
  wanted.io.on_error = OnError::skip;
  Loader loader(dataset, wanted);
  EXPECT_TRUE(rows_of(loader, 0).empty());
  ASSERT_EQ(loader.skipped().size(), kRows);
  for (const SkippedRows& skipped : loader.skipped()) {
    const std::string name = "image " + std::to_string(skipped.first_row) + " ";
    EXPECT_NE(skipped.reason.find(name), std::string::npos) << skipped.reason;
  }
}

TEST_F(LoaderDamagedImagesTest, DigestsTellWhatDecodesAllTheSame) {
  // Other pixels under the digest of the ones before.
  std::vector<std::uint8_t> bytes = test::read_bytes(path_);
  const auto as_bytes = [](const std::vector<std::byte>& from) {
    const auto* const begin = reinterpret_cast<const std::uint8_t*>(from.data());
    return std::vector<std::uint8_t>(begin, begin + from.size());
  };
  const std::vector<std::uint8_t> image = as_bytes(encoded_image(50).bytes);
  auto pixels = encoded_pixels(50);
  pixels[20] ^= 1;
  const std::vector<std::uint8_t> other = as_bytes(test::png_of(6, 8, pixels));
  if (other.size() != image.size()) GTEST_SKIP() << "it compresses otherwise";
  const auto at = std::search(bytes.begin(), bytes.end(), image.begin(), image.end());
  ASSERT_NE(at, bytes.end());
  std::copy(other.begin(), other.end(), at);
  test::write_bytes(path_, bytes);
  LoaderOptions wanted = options();
  Loader unaware(open(), wanted);
  for (const Batch& batch : unaware.epoch(0)) static_cast<void>(batch);
  wanted.io.verify = Verify::always;
  Loader loader(open(), wanted);
  expect_error(ErrorCode::digest_mismatch, {"image 50"}, [&] { rows_of(loader, 0); });
}

// One image of 16 megapixels among small ones takes its memory once, not once a thread.
TEST_F(LoaderEncodedTest, MemoryStaysWithinTheBudget) {
  const std::string path = folder_.file("mixed.h5");
  EncodedWriter writer(path, {});
  for (std::int64_t row = 0; row < 40; ++row) {
    writer.add(row % 13 == 5 ? encoded_image(row, 4000, 4000) : encoded_image(row));
  }
  writer.close({});
  const Dataset dataset = Dataset::open(path, {.decode = DecodeOptions{.height = 8, .width = 8}});
  LoaderOptions wanted = options();
  wanted.io.num_threads = 8;
  wanted.memory.budget = std::int64_t{1} << 30;
  Loader loader(dataset, wanted);
  EXPECT_LT(loader.memory_bytes(), (std::int64_t{600} << 20));
  std::int64_t images = 0;
  for (const Batch& batch : loader.epoch(0)) images += batch.size();
  EXPECT_EQ(images, 40);
  wanted.memory.budget = std::int64_t{64} << 20;
  expect_error(ErrorCode::out_of_resources, {path, "memory_budget"},
               [&] { Loader(dataset, wanted); });
}

}  // namespace
}  // namespace chunkio
