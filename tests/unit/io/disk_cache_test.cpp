#include "io/disk_cache.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "support/errors.hpp"
#include "support/scratch.hpp"

namespace chunkio::io {
namespace {

constexpr std::int64_t kPiece = DiskCache::kPieceBytes;
constexpr std::int64_t kObject = 40 * kPiece + 100;
constexpr std::int64_t kMuch = std::int64_t{1} << 40;

class DiskCacheTest : public testing::Test {
 protected:
  DiskCacheTest() : bytes_(static_cast<std::size_t>(kObject)) {
    std::mt19937_64 random(test::test_seed());
    for (std::byte& byte : bytes_) byte = static_cast<std::byte>(random());
  }

  [[nodiscard]] DiskCache open(const std::string& object = "a", std::int64_t most = kMuch) const {
    return {folder_, most, object, kObject};
  }
  [[nodiscard]] std::span<const std::byte> part(std::int64_t begin, std::int64_t end) const {
    return std::span(bytes_).subspan(static_cast<std::size_t>(begin),
                                     static_cast<std::size_t>(end - begin));
  }
  /// Bytes of [begin, end) that are there, which must be the right ones.
  std::int64_t read(const DiskCache& cache, std::int64_t begin, std::int64_t end) const {
    std::vector<std::byte> out(static_cast<std::size_t>(end - begin));
    const std::size_t there = cache.read(begin, out);
    EXPECT_TRUE(std::equal(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(there),
                           part(begin, end).begin()));
    return static_cast<std::int64_t>(there);
  }
  /// The files of objects.
  [[nodiscard]] std::vector<std::string> files() const {
    std::vector<std::string> paths;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      if (entry.path().extension() == ".chunkio") paths.push_back(entry.path());
    }
    return paths;
  }
  void flip_byte(std::int64_t offset) const {
    std::fstream file(files().front(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(offset);
    const int byte = file.get();
    file.seekp(offset);
    file.put(static_cast<char>(byte ^ 1));
  }

  test::ScratchFolder scratch_;
  std::string folder_ = scratch_.file("cache/of/files");
  std::vector<std::byte> bytes_;
};

TEST_F(DiskCacheTest, WhatWasKeptIsThere) {
  DiskCache cache = open();
  EXPECT_EQ(read(cache, 0, kObject), 0);
  EXPECT_EQ(cache.missing(0, kObject), kObject);
  cache.keep(2 * kPiece, part(2 * kPiece, 5 * kPiece));
  EXPECT_EQ(read(cache, 0, kObject), 0);
  EXPECT_EQ(cache.missing(0, kObject), 2 * kPiece);
  EXPECT_EQ(read(cache, 2 * kPiece, kObject), 3 * kPiece);
  EXPECT_EQ(read(cache, 3 * kPiece, 4 * kPiece), kPiece);
  EXPECT_EQ(cache.missing(5 * kPiece, kPiece), kPiece);
  // The last piece ends with the object.
  cache.keep(40 * kPiece, part(40 * kPiece, kObject));
  EXPECT_EQ(read(cache, 40 * kPiece, kObject), 100);
  EXPECT_EQ(cache.missing(5 * kPiece, kObject - 5 * kPiece), 35 * kPiece);
}

TEST_F(DiskCacheTest, OthersFindIt) {
  open().keep(0, bytes_);
  EXPECT_EQ(read(open(), 0, kObject), kObject);
  EXPECT_EQ(read(open("another version"), 0, kObject), 0);
  EXPECT_EQ(files().size(), 2U);
}

TEST_F(DiskCacheTest, WhatDoesNotMatchIsNotThere) {
  DiskCache cache = open();
  cache.keep(0, bytes_);
  flip_byte(7 * kPiece + 11);
  EXPECT_EQ(read(cache, 0, kObject), 7 * kPiece);
  // What lies behind it may be as wrong.
  EXPECT_EQ(cache.missing(7 * kPiece, kObject - 7 * kPiece), kObject - 7 * kPiece);
  EXPECT_EQ(read(cache, 8 * kPiece, kObject), kObject - 8 * kPiece);
  cache.keep(7 * kPiece, part(7 * kPiece, 8 * kPiece));
  EXPECT_EQ(read(cache, 0, kObject), kObject);
}

/// As after a crash of the machine, when data had not reached the disk but their digests had.
TEST_F(DiskCacheTest, DigestsWithoutTheirBytesDoNotMatch) {
  open().keep(0, bytes_);
  const base::FileDescriptor file(::open(files().front().c_str(), O_RDWR | O_CLOEXEC));
  const std::vector<std::byte> zeros(static_cast<std::size_t>(20 * kPiece));
  base::write_at(file.get(), 10 * kPiece, zeros, "");
  const DiskCache cache = open();
  EXPECT_EQ(read(cache, 0, kObject), 10 * kPiece);
  EXPECT_EQ(cache.missing(10 * kPiece, 30 * kPiece), 30 * kPiece);
}

TEST_F(DiskCacheTest, AFileThatWasCutIsEmptyAgain) {
  {
    DiskCache cache = open();
    cache.keep(0, bytes_);
    std::filesystem::resize_file(files().front(), 100);
    EXPECT_EQ(read(cache, 0, kObject), 0);
    EXPECT_EQ(cache.missing(0, kObject), kObject);
  }
  DiskCache cache = open();
  EXPECT_EQ(read(cache, 0, kObject), 0);
  cache.keep(0, bytes_);
  EXPECT_EQ(read(cache, 0, kObject), kObject);
}

TEST_F(DiskCacheTest, TheFolderMayBeDeleted) {
  DiskCache cache = open();
  cache.keep(0, part(0, 4 * kPiece));
  std::filesystem::remove_all(folder_);
  cache.keep(4 * kPiece, part(4 * kPiece, 8 * kPiece));
  EXPECT_EQ(read(cache, 0, 8 * kPiece), 4 * kPiece) << "what nobody else would find is not kept";
  EXPECT_EQ(read(open(), 0, kObject), 0);
}

TEST_F(DiskCacheTest, NoMoreIsKeptThanThereIsRoomFor) {
  DiskCache cache = open("a", 8 * kPiece);
  cache.keep(0, part(0, 6 * kPiece));
  cache.keep(10 * kPiece, part(10 * kPiece, 16 * kPiece));
  EXPECT_EQ(read(cache, 0, kObject), 6 * kPiece) << "what is in use stays";
  EXPECT_EQ(read(cache, 10 * kPiece, kObject), 0);
  cache.keep(20 * kPiece, part(20 * kPiece, 21 * kPiece));
  EXPECT_EQ(read(cache, 20 * kPiece, 21 * kPiece), kPiece);
}

TEST_F(DiskCacheTest, WhatWasOpenedLongestAgoMakesRoom) {
  for (const char* object : {"a", "b", "c"}) {
    open(object).keep(0, bytes_);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // for times of modification
  }
  const DiskCache in_use = open("a");  // so that b was opened longest ago
  std::ofstream(folder_ + "/notes.txt") << "mine";
  DiskCache cache = open("d", 3 * kObject + 20 * kPiece);
  cache.keep(0, bytes_);
  EXPECT_EQ(read(cache, 0, kObject), kObject);
  EXPECT_EQ(read(in_use, 0, kObject), kObject);
  EXPECT_EQ(read(open("c"), 0, kObject), kObject);
  EXPECT_EQ(files().size(), 3U);
  EXPECT_EQ(read(open("b"), 0, kObject), 0);
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/notes.txt"));
}

TEST_F(DiskCacheTest, ThreadsMayKeepTheSame) {
  DiskCache cache = open();
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] {
        std::mt19937 random(static_cast<unsigned>(i));
        for (int times = 0; times < 200; ++times) {
          const std::int64_t begin = static_cast<std::int64_t>(random() % 40) * kPiece;
          const std::int64_t end = std::min(begin + 3 * kPiece, kObject);
          if (read(cache, begin, end) < end - begin) cache.keep(begin, part(begin, end));
        }
      });
    }
  }
  cache.keep(0, bytes_);
  EXPECT_EQ(read(cache, 0, kObject), kObject);
}

TEST_F(DiskCacheTest, AFolderThatCannotBeIsRefused) {
  std::ofstream(scratch_.file("file")) << "no folder";
  test::expect_error(ErrorCode::io_failed, {"cannot keep remote files in", "remote_cache"},
                     [&] { const DiskCache cache(scratch_.file("file"), kMuch, "a", kObject); });
  test::expect_error(ErrorCode::io_failed, {"cannot keep remote files in", "remote_cache"}, [&] {
    const DiskCache cache(scratch_.file("file/below"), kMuch, "a", kObject);
  });
}

}  // namespace
}  // namespace chunkio::io
