#include "io/range_writer.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "support/cached_pages.hpp"
#include "support/errors.hpp"
#include "support/scratch.hpp"

namespace chunkio::io {
namespace {

constexpr std::int64_t kLarge = std::int64_t{1} << 20;

base::FileDescriptor create(const std::string& path) {
  return base::FileDescriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
}

std::vector<std::byte> noise(std::size_t size, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

std::vector<std::byte> contents(const std::string& path) {
  std::vector<std::byte> bytes(std::filesystem::file_size(path));
  std::ifstream(path, std::ios::binary)
      .read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

/// Neighbours of all lengths, some large enough to bypass the page cache, in any order and from
/// several threads.
void expect_all_written(const std::string& path) {
  std::mt19937_64 random(test::test_seed());
  std::vector<std::int64_t> begins = {0};
  for (int i = 0; i < 40; ++i) {
    const std::uint64_t most = i % 3 == 0 ? 3 * kLarge : 20'000;
    begins.push_back(begins.back() + static_cast<std::int64_t>(random() % most));
  }
  const std::vector<std::byte> bytes = noise(static_cast<std::size_t>(begins.back()), 3);
  std::vector<std::size_t> order(begins.size() - 1);
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), random);
  const base::FileDescriptor file = create(path);
  RangeWriter writer(file.get(), path);
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < 3; ++t) {
      threads.emplace_back([&, t] {
        for (std::size_t i = t; i < order.size(); i += 3) {
          const auto begin = static_cast<std::size_t>(begins[order[i]]);
          const auto end = static_cast<std::size_t>(begins[order[i] + 1]);
          writer.write(begins[order[i]], std::span(bytes).subspan(begin, end - begin));
        }
      });
    }
  }
  ASSERT_EQ(contents(path), bytes);
}

TEST(RangeWriter, WritesAnyRange) {
  const test::ScratchFolder folder;
  expect_all_written(folder.file("file"));
}

TEST(RangeWriter, WritesThroughThePageCacheWhereThereIsNoOtherWay) {
  const std::string path = "/dev/shm/chunkio-range-writer-" + std::to_string(::getpid());
  if (!create(path).valid()) GTEST_SKIP() << "no /dev/shm";
  expect_all_written(path);
  std::filesystem::remove(path);
}

TEST(RangeWriter, LeavesThePageCacheAlone) {
  const test::ScratchFolder folder;
  const std::string path = folder.file("file");
  const base::FileDescriptor file = create(path);
  RangeWriter writer(file.get(), path);
  if (!writer.direct()) GTEST_SKIP() << "this file system has no O_DIRECT";
  const std::vector<std::byte> bytes = noise(16 << 20, 5);
  writer.write(1, bytes);
  EXPECT_LE(test::cached_bytes(file.get(), 1 + bytes.size()), 2 * 4096U);
  const std::vector<std::byte> written = contents(path);
  EXPECT_TRUE(std::ranges::equal(std::span(written).subspan(1), bytes));
}

TEST(RangeWriter, SaysWhatWentWrong) {
  const test::ScratchFolder folder;
  const std::string path = folder.file("file");
  static_cast<void>(create(path));
  const base::FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  RangeWriter writer(file.get(), path);
  const std::vector<std::byte> bytes = noise(100, 7);
  test::expect_error(ErrorCode::io_failed, {path}, [&] { writer.write(0, bytes); });
}

}  // namespace
}  // namespace chunkio::io
