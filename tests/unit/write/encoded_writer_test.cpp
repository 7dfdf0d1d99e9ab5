// EncodedWriter: what lands in the file, what is refused, and what is left by writers that end
// early.
#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <chunkio/dataset_writer.hpp>
#include <chunkio/verify.hpp>

#include "support/encoded_files.hpp"
#include "support/errors.hpp"
#include "support/h5_files.hpp"
#include "support/scratch.hpp"

namespace chunkio {
namespace {

using test::encoded_image;
using test::expect_error;
using test::numbers_field;

class EncodedWriterTest : public ::testing::Test {
 protected:
  void expect_nothing_left() const {
    EXPECT_FALSE(std::filesystem::exists(path_));
    EXPECT_FALSE(std::filesystem::exists(path_ + ".partial"));
  }

  test::ScratchFolder folder_;
  std::string path_ = folder_.file("images.h5");
};

// A few bytes lie where libhdf5 puts them, more at the place of their own.
TEST_F(EncodedWriterTest, ImagesComeBackAsTheyAre) {
  for (const std::int64_t count : {1, 3, 400}) {
    SCOPED_TRACE(count);
    const std::string path = folder_.file(std::to_string(count) + ".h5");
    EncodedWriter writer(path, {.class_names = {},
                                .split = "train",
                                .order = "shuffled",
                                .seed = 5,
                                .expected_bytes = 100});
    for (std::int64_t row = 0; row < count; ++row) {
      EncodedImage image = encoded_image(row, 1 + row % 7, 1 + row % 11);
      if (row % 3 == 1) image.orientation = 6;
      writer.add(image);
    }
    EXPECT_EQ(writer.num_rows(), count);
    writer.close({numbers_field("labels", 0, count), numbers_field("group/other", 7, count)});
    writer.close({});  // does nothing

    const Dataset dataset = Dataset::open(path);
    const DatasetInfo& info = dataset.info();
    EXPECT_EQ(info.num_samples, count);
    EXPECT_EQ(info.format_version, 4);
    EXPECT_EQ(info.split, "train");
    EXPECT_EQ(info.seed, 5);
    EXPECT_FALSE(info.has_images());
    ASSERT_TRUE(info.encoded);
    EXPECT_EQ(info.encoded->max_height, std::min<std::int64_t>(count, 7));
    EXPECT_EQ(info.encoded->max_width, std::min<std::int64_t>(count, 11));
    ASSERT_TRUE(info.labels);
    ASSERT_EQ(info.fields.size(), 1);
    EXPECT_EQ(info.fields.front().name, "group/other");
    std::int64_t bytes = 0;
    for (std::int64_t row = 0; row < count; ++row) {
      const EncodedImage image = dataset.read_encoded(row);
      EXPECT_EQ(image.bytes, encoded_image(row, 1 + row % 7, 1 + row % 11).bytes);
      EXPECT_EQ(image.height, 1 + row % 7);
      EXPECT_EQ(image.width, 1 + row % 11);
      EXPECT_EQ(image.orientation, row % 3 == 1 ? 6 : 1);
      bytes += std::ssize(image.bytes);
    }
    EXPECT_EQ(info.encoded->num_bytes, bytes);
    EXPECT_EQ(why_not_verifiable(dataset), "");
    EXPECT_TRUE(verify_chunks(dataset).damaged.empty());
  }
}

TEST_F(EncodedWriterTest, DamageIsFoundAndNamed) {
  test::encoded_file(path_, 0, 300);
  const Dataset intact = Dataset::open(path_);
  std::int64_t offset = std::int64_t{1} << 20;
  if (intact.info().encoded->num_bytes < (1 << 16)) {
    // Found by its bytes.
    const std::vector<std::uint8_t> all = test::read_bytes(path_);
    const auto first = intact.read_encoded(0).bytes;
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(first.data());
    offset = std::search(all.begin(), all.end(), bytes, bytes + first.size()) - all.begin();
  }
  std::int64_t skipped = 0;
  for (std::int64_t row = 0; row < 123; ++row)
    skipped += std::ssize(intact.read_encoded(row).bytes);
  {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(offset + skipped + 50);
    file.put('\x55');
  }
  const VerifyResult result = verify_chunks(Dataset::open(path_));
  ASSERT_EQ(result.damaged.size(), 1);
  EXPECT_EQ(result.damaged.front().damaged_rows, (std::vector<RowRange>{{123, 124}}));
  EXPECT_NE(result.damaged.front().reason.find("row 123"), std::string::npos);
}

TEST_F(EncodedWriterTest, WhatCannotBeIsRefused) {
  const auto refused = [&](const EncodedImage& image, const std::string& part) {
    EncodedWriter writer(path_, {});
    writer.add(encoded_image(0));
    expect_error(ErrorCode::invalid_argument, {path_, part}, [&] { writer.add(image); });
  };
  EncodedImage image = encoded_image(1);
  image.bytes.clear();
  refused(image, "no bytes");
  for (const std::int64_t side : {0, -1, 65536}) {
    image = encoded_image(1);
    image.width = side;
    refused(image, "sides");
  }
  for (const int orientation : {0, 9}) {
    image = encoded_image(1);
    image.orientation = static_cast<std::uint8_t>(orientation);
    refused(image, "orientation");
  }
  expect_nothing_left();
  expect_error(ErrorCode::invalid_argument, {"no images"}, [&] {
    EncodedWriter writer(path_, {});
    writer.close({});
  });
  expect_error(ErrorCode::invalid_argument, {"labels", "2 samples"}, [&] {
    EncodedWriter writer(path_, {});
    writer.add(encoded_image(0));
    writer.add(encoded_image(1));
    writer.close({numbers_field("labels", 0, 3)});
  });
  expect_error(ErrorCode::invalid_argument, {"expected_bytes"},
               [&] { EncodedWriter(path_, {.expected_bytes = -1}); });
  expect_nothing_left();
}

TEST_F(EncodedWriterTest, AWriterThatEndsEarlyLeavesNothing) {
  {
    EncodedWriter writer(path_, {});
    writer.add(encoded_image(0));
    EXPECT_TRUE(std::filesystem::exists(path_ + ".partial"));
  }
  expect_nothing_left();
  std::stop_source stopped;
  stopped.request_stop();
  EncodedWriter writer(path_, {}, {.stop = stopped.get_token()});
  writer.add(encoded_image(0));
  expect_error(ErrorCode::cancelled, {path_}, [&] { writer.close({}); });
  expect_nothing_left();
  expect_error(ErrorCode::invalid_argument, {"earlier"}, [&] { writer.close({}); });
}

TEST_F(EncodedWriterTest, ReplacesOnlyWhenAsked) {
  test::encoded_file(path_, 0, 2);
  expect_error(ErrorCode::output_exists, {path_}, [&] { EncodedWriter(path_, {}); });
  EncodedWriter writer(path_, {}, {.overwrite = true});
  writer.add(encoded_image(0));
  EXPECT_EQ(Dataset::open(path_).size(), 2);
  writer.close({});
  EXPECT_EQ(Dataset::open(path_).size(), 1);
}

TEST_F(EncodedWriterTest, GoesOnWithWhatWasCommitted) {
  constexpr std::int64_t kRows = 9;
  const EncodedWriterOptions options{.identity = R"({"input":"photos"})", .commit_bytes = 1};
  EncodedWriterOptions again = options;
  again.resume = true;
  {
    EncodedWriter writer(path_, {}, options);
    EXPECT_FALSE(writer.commit_due());
    EXPECT_FALSE(writer.committed());
    for (int row = 0; row < 4; ++row) writer.add(encoded_image(row));
    EXPECT_TRUE(writer.commit_due());
    writer.commit("first");
    EXPECT_FALSE(writer.commit_due());
    writer.commit("nothing new");
    writer.add(encoded_image(4));
    writer.commit(std::string_view("\0x", 2));
    writer.add(encoded_image(5));
    EXPECT_TRUE(writer.committed());
  }
  EXPECT_FALSE(std::filesystem::exists(path_));
  expect_error(ErrorCode::output_exists, {path_ + ".partial", "left over"},
               [&] { EncodedWriter(path_, {}, options); });
  EncodedWriterOptions other = again;
  other.identity = R"({"input":"pictures"})";
  expect_error(ErrorCode::invalid_argument, {"\"photos\"", "\"pictures\""},
               [&] { EncodedWriter(path_, {}, other); });
  expect_error(ErrorCode::invalid_argument, {"split", "\"train\""},
               [&] { EncodedWriter(path_, {.split = "train"}, again); });

  EncodedWriter writer(path_, {}, again);
  ASSERT_EQ(writer.resumed().size(), 2U);
  EXPECT_EQ(writer.resumed()[0].note, "first");
  EXPECT_EQ(writer.resumed()[0].num_rows, 4);
  EXPECT_EQ(writer.resumed()[1].note, std::string_view("\0x", 2));
  EXPECT_EQ(writer.num_rows(), 5);
  EXPECT_TRUE(writer.committed());
  for (int row = 5; row < kRows; ++row) writer.add(encoded_image(row));
  writer.close({});
  EXPECT_FALSE(writer.committed());
  EXPECT_TRUE(DatasetWriter::is_published(path_));
  const Dataset dataset = Dataset::open(path_);
  ASSERT_EQ(dataset.size(), kRows);
  for (int row = 0; row < kRows; ++row) {
    EXPECT_EQ(dataset.read_encoded(row).bytes, encoded_image(row).bytes) << row;
  }
}

TEST_F(EncodedWriterTest, NeverGoesOnWithAnotherKindOfFile) {
  const EncodedWriterOptions encoded{.identity = "{}", .resume = true};
  {
    DatasetWriter writer(path_, test::small_spec(4), {.chunk_samples = 1, .identity = "{}"});
    writer.write_chunk(0, std::vector<std::byte>(6 * 5 * 3));
    writer.commit();
  }
  expect_error(ErrorCode::invalid_argument, {path_ + ".partial", "another run"},
               [&] { EncodedWriter(path_, {}, encoded); });
  EncodedWriter writer(path_, {}, {.overwrite = true, .identity = "{}"});
  writer.add(encoded_image(0));
  writer.commit();
  expect_error(ErrorCode::invalid_argument, {"resume"},
               [&] { EncodedWriter(path_, {}, {.overwrite = true, .resume = true}); });
}

TEST_F(EncodedWriterTest, DigestsThatComeWithImagesAreCompared) {
  test::encoded_file(path_, 0, 5);
  const Dataset dataset = Dataset::open(path_);
  EncodedWriter writer(folder_.file("copy.h5"), {});
  for (const std::int64_t row : {3, 1}) {
    const EncodedImage image = dataset.read_encoded(row);
    ASSERT_TRUE(image.digest);
    writer.add(image);
  }
  EncodedImage other = dataset.read_encoded(2);
  other.bytes.back() ^= std::byte{1};
  expect_error(ErrorCode::digest_mismatch, {"copy.h5", "image 2", "digest"},
               [&] { writer.add(other); });
  EXPECT_EQ(writer.num_rows(), 2);
  writer.close({});
  EXPECT_EQ(Dataset::open(folder_.file("copy.h5")).read_encoded(0).digest,
            dataset.read_encoded(3).digest);
}

TEST_F(EncodedWriterTest, SaysWhichShardItIs) {
  for (std::int64_t i = 0; i < 2; ++i) {
    EncodedWriter writer(
        shard_path(path_, i, 2),
        {.shard =
             ShardInfo{.index = i, .count = 2, .first_row = 3 * i, .total_rows = 5, .set = "s"}});
    for (std::int64_t row = 3 * i; row < (i == 0 ? 3 : 5); ++row) writer.add(encoded_image(row));
    writer.close({});
  }
  const Dataset first = Dataset::open(shard_path(path_, 0, 2));
  ASSERT_TRUE(first.info().shard);
  EXPECT_EQ(first.info().shard->total_rows, 5);
  const Dataset all = Dataset::open(folder_.file("images-*-of-00002.h5"));
  EXPECT_EQ(all.size(), 5);
  EXPECT_EQ(all.read_encoded(4).bytes, encoded_image(4).bytes);
  expect_error(ErrorCode::invalid_argument, {"shard"}, [&] {
    EncodedWriter writer(folder_.file("x.h5"),
                         {.shard = ShardInfo{.index = 0, .count = 2, .total_rows = 1, .set = "s"}});
    for (std::int64_t row = 0; row < 2; ++row) writer.add(encoded_image(row));
    writer.close({});
  });
}

}  // namespace
}  // namespace chunkio
