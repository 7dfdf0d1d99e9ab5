#include "io/range_reader.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "base/host_memory.hpp"
#include "io/direct_file.hpp"
#include "io/local_file.hpp"
#include "support/errors.hpp"
#include "support/noise_file.hpp"
#include "support/scratch.hpp"

namespace chunkio::io {
namespace {

/// The file, read bypassing the page cache if that is asked for and possible.
std::shared_ptr<const ByteSource> bytes_of(const test::NoiseFile& file, bool direct) {
  return direct ? direct_if_possible(file.file) : file.file;
}

void expect_range(const RangeReader& reader, const test::NoiseFile& file, std::int64_t offset,
                  std::int64_t size) {
  const base::HostBuffer scratch(std::max<std::size_t>(reader.scratch_bytes(size), 1));
  ReadCost cost;
  const auto bytes = reader.read({offset, offset + size}, scratch.bytes(), {}, cost);
  ASSERT_EQ(bytes.size(), static_cast<std::size_t>(size));
  ASSERT_TRUE(std::equal(bytes.begin(), bytes.end(),
                         reinterpret_cast<const std::byte*>(file.bytes.data()) + offset))
      << size << " bytes at " << offset;
  EXPECT_GE(cost.bytes_read, size);
  EXPECT_LE(cost.bytes_read, reader.source().block_bytes() > 1 ? size + 8192 : size);
}

TEST(RangeReader, ReadsAnyRange) {
  const test::ScratchFolder folder;
  const test::NoiseFile file(folder.file("file"), 123'457);
  std::mt19937_64 random(test::test_seed());
  for (const bool direct_io : {false, true}) {
    const auto source = bytes_of(file, direct_io);
    const RangeReader reader(*source);
    const std::int64_t end = 123'457;
    for (int round = 0; round < 300; ++round) {
      const auto offset = static_cast<std::int64_t>(random() % 123'457);
      const std::int64_t room = end - offset;
      expect_range(reader, file, offset,
                   random() % 4 == 0 ? room : static_cast<std::int64_t>(random() % 20000) % room);
    }
    expect_range(reader, file, 0, end);
    expect_range(reader, file, 4096, 8192);
    expect_range(reader, file, 122'880, 577);
    expect_range(reader, file, end - 1, 1);
  }
}

TEST(RangeReader, LeavesThePageCacheAloneWhenAskedTo) {
  const test::ScratchFolder folder;
  const test::NoiseFile file(folder.file("file"), 1 << 20);
  const auto direct = open_direct(file.file);
  if (!direct) GTEST_SKIP() << "this file system has no O_DIRECT";
  const RangeReader reader(*direct);
  file.drop_from_cache();
  if (file.cached_bytes() != 0) GTEST_SKIP() << "this file system keeps its pages";
  expect_range(reader, file, 1000, 900'000);
  EXPECT_EQ(file.cached_bytes(), 0U);
  // Whereas ordinary reads fill it.
  expect_range(RangeReader(*file.file), file, 1000, 900'000);
  EXPECT_GE(file.cached_bytes(), 900'000U);
}

TEST(RangeReader, ReadsAsUsualWhereTheFileSystemRefuses) {
  const auto file = std::make_shared<const LocalFile>("/proc/version");
  const std::vector<std::uint8_t> expected = test::read_bytes(file->name());
  EXPECT_EQ(open_direct(file), nullptr);
  EXPECT_EQ(direct_if_possible(file), file);
  const RangeReader reader(*file);
  const base::HostBuffer scratch(reader.scratch_bytes(10));
  ReadCost cost;
  const auto bytes = reader.read({3, 13}, scratch.bytes(), {}, cost);
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(),
                         reinterpret_cast<const std::byte*>(expected.data()) + 3));
  EXPECT_EQ(cost.bytes_read, 10);
}

TEST(RangeReader, ReadsTheFileThatWasOpenedNotTheOneThatTookItsName) {
  const test::ScratchFolder folder;
  const test::NoiseFile file(folder.file("file"), 100'000);
  test::write_bytes(folder.file("new"), std::vector<std::uint8_t>(100'000));
  std::filesystem::rename(folder.file("new"), folder.file("file"));
  for (const bool direct_io : {false, true}) {
    expect_range(RangeReader(*bytes_of(file, direct_io)), file, 5, 99'000);
  }
}

TEST(RangeReader, TheEndOfTheFileIsAnError) {
  const test::ScratchFolder folder;
  const test::NoiseFile file(folder.file("file"), 10'000);
  for (const bool direct_io : {false, true}) {
    const auto source = bytes_of(file, direct_io);
    const RangeReader reader(*source);
    const base::HostBuffer scratch(reader.scratch_bytes(100'000));
    ReadCost cost;
    for (const std::int64_t offset : {0, 9'999, 10'000, 12'288, 1'000'000}) {
      test::expect_error(ErrorCode::corrupt_data, {folder.file("file"), "ends at byte"}, [&] {
        (void)reader.read({offset, offset + 20'000}, scratch.bytes(), {}, cost);
      });
    }
  }
}

/// Whoever reads DirectFile without a RangeReader gets the same bytes.
TEST(DirectFile, UnalignedReadsAreServedToo) {
  const test::ScratchFolder folder;
  const test::NoiseFile file(folder.file("file"), 20'000);
  const auto source = bytes_of(file, true);
  std::vector<std::byte> bytes(12'345);
  source->read_at(777, bytes, {});
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(),
                         reinterpret_cast<const std::byte*>(file.bytes.data()) + 777));
}

TEST(LocalFile, ItsVersionMovesWithItsContentsAndNotWithItsName) {
  const test::ScratchFolder folder;
  const test::NoiseFile file(folder.file("file"), 1000);
  const std::uint64_t version = file.file->version();
  std::filesystem::rename(folder.file("file"), folder.file("renamed"));
  EXPECT_EQ(file.file->version(), version);
  // Of the same size, as old as it was but for a moment.
  const auto time = std::filesystem::last_write_time(folder.file("renamed"));
  std::filesystem::last_write_time(folder.file("renamed"), time + std::chrono::microseconds(1));
  EXPECT_NE(file.file->version(), version);
  // Of another size and as old.
  std::filesystem::resize_file(folder.file("renamed"), 1001);
  std::filesystem::last_write_time(folder.file("renamed"), time);
  EXPECT_NE(file.file->version(), version);
  EXPECT_EQ(file.file->size(), 1000);
}

}  // namespace
}  // namespace chunkio::io
