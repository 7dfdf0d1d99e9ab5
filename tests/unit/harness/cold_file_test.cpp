#include "harness/cold_file.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/host_memory.hpp"
#include "base/positional_io.hpp"
#include "support/cached_pages.hpp"
#include "support/scratch.hpp"

namespace {

const auto kPage = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));

/// Not a whole number of pages.
constexpr std::size_t kFileBytes = 5 * (std::size_t{1} << 20) + 100;

TEST(ColdFile, WhatIsMissingOfAFileIsReadBack) {
  const chunkio::test::ScratchFolder scratch;
  const std::string path = scratch.file("a");
  std::ofstream(path, std::ios::binary) << std::string(kFileBytes, 'x');
  if (bench::put_out_of_page_cache(path) > 0) {
    GTEST_SKIP() << "the file system of " << path << " keeps what it has in memory";
  }
  const auto file = chunkio::base::FileDescriptor::open_for_reading(path);
  // Holes in what is cached.
  std::vector<std::byte> bytes(kPage);
  for (const std::int64_t at : {std::int64_t{0}, std::int64_t{3} << 20}) {
    chunkio::base::read_at(file.get(), at, bytes, path);
  }
  const std::size_t whole = (kFileBytes + kPage - 1) / kPage * kPage;
  ASSERT_LT(chunkio::test::cached_bytes(file.get(), kFileBytes), whole);

  int checks = 0;
  bench::read_into_page_cache(path, [&] { ++checks; });
  EXPECT_EQ(chunkio::test::cached_bytes(file.get(), kFileBytes), whole);
  EXPECT_GT(checks, 0);

  checks = 0;
  bench::read_into_page_cache(path, [&] { ++checks; });
  EXPECT_EQ(checks, 0) << "what is there is not read again";
}

TEST(ColdFile, AnEmptyFileIsInThePageCache) {
  const chunkio::test::ScratchFolder scratch;
  const std::string path = scratch.file("empty");
  std::ofstream{path};
  bench::read_into_page_cache(path, [] { FAIL(); });
}

std::size_t pages_there(const std::byte* begin, std::size_t bytes) {
  std::vector<unsigned char> flags(bytes / kPage);
  EXPECT_EQ(::mincore(const_cast<std::byte*>(begin), bytes, flags.data()), 0);
  return static_cast<std::size_t>(
      std::count_if(flags.begin(), flags.end(), [](unsigned char flag) { return flag % 2 == 1; }));
}

TEST(NewMemory, HasItsPagesAfterwardsAndKeepsWhatItHolds) {
  constexpr std::size_t kBytes = std::size_t{32} << 20;
  const bench::NewMemory since;
  const chunkio::base::HostBuffer memory(kBytes);
  memory.data()[kBytes / 2] = std::byte{7};
  ASSERT_LT(pages_there(memory.data(), kBytes), kBytes / kPage);
  if (::madvise(memory.data() + kBytes / 2, kPage, MADV_POPULATE_WRITE) != 0) {
    GTEST_SKIP() << "a kernel before 5.14";
  }
  since.touch();
  EXPECT_EQ(pages_there(memory.data(), kBytes), kBytes / kPage);
  EXPECT_EQ(memory.data()[kBytes / 2], std::byte{7});
  EXPECT_EQ(memory.data()[kBytes - 1], std::byte{0});
}

}  // namespace
