#include "io/range_reader.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "base/host_memory.hpp"
#include "support/errors.hpp"
#include "support/noise_file.hpp"
#include "support/scratch.hpp"

namespace chunkio::io {
namespace {

void expect_range(const RangeReader& reader, const test::NoiseFile& file, std::int64_t offset,
                  std::int64_t size) {
  const base::HostBuffer scratch(std::max<std::size_t>(reader.scratch_bytes(size), 1));
  ReadCost cost;
  const auto bytes = reader.read(offset, size, scratch.bytes(), cost);
  ASSERT_EQ(bytes.size(), static_cast<std::size_t>(size));
  ASSERT_TRUE(std::equal(bytes.begin(), bytes.end(),
                         reinterpret_cast<const std::byte*>(file.bytes.data()) + offset))
      << size << " bytes at " << offset;
  EXPECT_GE(cost.bytes_read, size);
  EXPECT_LE(cost.bytes_read, reader.direct() ? size + 8192 : size);
}

TEST(RangeReader, ReadsAnyRange) {
  const test::ScratchFolder folder;
  const test::NoiseFile file(folder.file("file"), 123'457);
  std::mt19937_64 random(test::test_seed());
  for (const bool direct_io : {false, true}) {
    const RangeReader reader(file.impl, direct_io);
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
  const RangeReader reader(file.impl, true);
  if (!reader.direct()) GTEST_SKIP() << "this file system has no O_DIRECT";
  file.drop_from_cache();
  if (file.cached_bytes() != 0) GTEST_SKIP() << "this file system keeps its pages";
  expect_range(reader, file, 1000, 900'000);
  EXPECT_EQ(file.cached_bytes(), 0U);
  // Whereas ordinary reads fill it.
  expect_range(RangeReader(file.impl, false), file, 1000, 900'000);
  EXPECT_GE(file.cached_bytes(), 900'000U);
}

TEST(RangeReader, ReadsAsUsualWhereTheFileSystemRefuses) {
  const auto file = std::make_shared<Dataset::Impl>();
  file->info.path = "/proc/version";
  file->descriptor = base::FileDescriptor::open_for_reading(file->info.path);
  const std::vector<std::uint8_t> expected = test::read_bytes(file->info.path);
  const RangeReader reader(file, true);
  EXPECT_FALSE(reader.direct());
  const base::HostBuffer scratch(reader.scratch_bytes(10));
  ReadCost cost;
  const auto bytes = reader.read(3, 10, scratch.bytes(), cost);
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
    expect_range(RangeReader(file.impl, direct_io), file, 5, 99'000);
  }
}

TEST(RangeReader, TheEndOfTheFileIsAnError) {
  const test::ScratchFolder folder;
  const test::NoiseFile file(folder.file("file"), 10'000);
  for (const bool direct_io : {false, true}) {
    const RangeReader reader(file.impl, direct_io);
    const base::HostBuffer scratch(reader.scratch_bytes(100'000));
    ReadCost cost;
    for (const std::int64_t offset : {0, 9'999, 10'000, 12'288, 1'000'000}) {
      test::expect_error(ErrorCode::corrupt_data, {folder.file("file"), "ends at byte"},
                         [&] { (void)reader.read(offset, 20'000, scratch.bytes(), cost); });
    }
  }
}

}  // namespace
}  // namespace chunkio::io
