#include "io/page_cache.hpp"

#include <fcntl.h>
#include <sys/mman.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/positional_io.hpp"
#include "support/cached_pages.hpp"
#include "support/scratch.hpp"

namespace chunkio::io {
namespace {

constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

/// What a system with these files leaves this process.
class CacheableBytesTest : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) const {
    const std::filesystem::path path = scratch_.file(name);
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  [[nodiscard]] std::int64_t bytes() const {
    return cacheable_bytes(scratch_.file("proc"), scratch_.file("cgroup"));
  }

  test::ScratchFolder scratch_;
};

TEST_F(CacheableBytesTest, WithoutControlGroupsItIsWhatTheSystemHasAvailable) {
  EXPECT_EQ(bytes(), kNoLimit);
  write("proc/meminfo",
        "MemTotal:       16000000 kB\nMemFree:          100000 kB\nMemAvailable:    8000000 kB\n"
        "Buffers:              12 kB\n");
  EXPECT_EQ(bytes(), 8'000'000 * std::int64_t{1024});
}

TEST_F(CacheableBytesTest, TheLowestLimitOfTheGroupAndThoseAroundItCounts) {
  write("proc/meminfo", "MemAvailable:    8000000 kB\n");
  write("proc/self/cgroup", "0::/user.slice/job/step\n");
  write("cgroup/user.slice/job/step/memory.max", "max\n");
  EXPECT_EQ(bytes(), 8'000'000 * std::int64_t{1024});
  write("cgroup/user.slice/memory.max", "5000000\n");
  EXPECT_EQ(bytes(), 5'000'000);
  write("cgroup/user.slice/job/memory.max", "3000000\n");
  EXPECT_EQ(bytes(), 3'000'000);
  write("cgroup/user.slice/job/step/memory.max", "4000000\n");
  EXPECT_EQ(bytes(), 3'000'000);
  // In a container the group is the root.
  write("proc/self/cgroup", "0::/\n");
  EXPECT_EQ(bytes(), 8'000'000 * std::int64_t{1024});
  write("cgroup/memory.max", "2000000\n");
  EXPECT_EQ(bytes(), 2'000'000);
}

TEST_F(CacheableBytesTest, TheFirstVersionOfControlGroupsHasAHierarchyForMemory) {
  write("proc/self/cgroup",
        "garbage\n5:cpu,cpuacct:/elsewhere\n4:memory:/docker/abc\n1:name=systemd:/x\n0::/y\n");
  write("cgroup/memory/elsewhere/memory.limit_in_bytes", "10\n");
  write("cgroup/elsewhere/memory.max", "20\n");
  write("cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(bytes(), 9223372036854771712);
  write("cgroup/memory/docker/abc/memory.limit_in_bytes", "7000000\n");
  EXPECT_EQ(bytes(), 7'000'000);
  write("proc/self/cgroup", "4:hugetlb,memory:/docker/abc\n");
  EXPECT_EQ(bytes(), 7'000'000);
}

TEST(CacheableBytes, ThisSystemHasSome) {
  EXPECT_GT(cacheable_bytes(), 0);
  EXPECT_LT(cacheable_bytes(), std::int64_t{1} << 50);
}

TEST(DropPages, DropsThosePagesAndTheirEndsAndNoOthers) {
  const test::ScratchFolder scratch;
  const std::string path = scratch.file("a");
  const base::FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  const std::vector<std::byte> page(4096);
  // Page by page, so that no folio holds several.
  for (std::int64_t i = 0; i < 16; ++i) base::write_at(file.get(), i * 4096, page, path);
  test::drop_from_cache(file.get());
  if (test::cached_bytes(file.get(), 16 * 4096) != 0) {
    GTEST_SKIP() << "this file system keeps its pages";
  }
  ASSERT_EQ(::posix_fadvise(file.get(), 0, 0, POSIX_FADV_RANDOM), 0);
  std::vector<std::byte> back(4096);
  for (std::int64_t i = 0; i < 16; ++i) base::read_at(file.get(), i * 4096, back, path);
  ASSERT_EQ(test::cached_bytes(file.get(), 16 * 4096), 16U * 4096U);
  drop_pages(file.get(), 3 * 4096 + 1, 3 * 4096 + 1);
  EXPECT_EQ(test::cached_bytes(file.get(), 16 * 4096), 16U * 4096U);
  drop_pages(file.get(), 3 * 4096 + 1, 6 * 4096 + 1);
  std::vector<bool> expected(16, true);
  for (std::size_t dropped = 3; dropped <= 6; ++dropped) expected[dropped] = false;
  EXPECT_EQ(test::cached_pages(file.get(), 16 * 4096), expected);
}

TEST(HasPages, EndsThatNeighboursBroughtInDoNotHideWhatIsMissingBetween) {
  const test::ScratchFolder scratch;
  const std::string path = scratch.file("a");
  const base::FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  const auto size = static_cast<std::size_t>(4 * kFolioBytes);
  base::write_at(file.get(), 0, std::vector<std::byte>(size), path);
  test::drop_from_cache(file.get());
  if (test::cached_bytes(file.get(), size) != 0) GTEST_SKIP() << "this file system keeps its pages";
  ASSERT_EQ(::posix_fadvise(file.get(), 0, 0, POSIX_FADV_RANDOM), 0);
  const std::int64_t begin = kFolioBytes - 1;
  const std::int64_t end = 3 * kFolioBytes + 1;
  std::byte byte{};
  for (const std::int64_t at : {begin, end - 1}) base::read_at(file.get(), at, {&byte, 1}, path);
  EXPECT_TRUE(has_pages(file.get(), begin, begin + 1));
  EXPECT_TRUE(in_page_cache(file.get(), end - 1));
  EXPECT_FALSE(has_pages(file.get(), begin, end));
  std::vector<std::byte> all(static_cast<std::size_t>(end - begin));
  base::read_at(file.get(), begin, all, path);
  EXPECT_TRUE(has_pages(file.get(), begin, end));
}

TEST(AreInMemory, SaysSoOfEachPageAndReadsNone) {
  const test::ScratchFolder scratch;
  const std::string path = scratch.file("a");
  const base::FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  const auto size = static_cast<std::size_t>(8 * kFolioBytes);
  base::write_at(file.get(), 0, std::vector<std::byte>(size), path);
  ASSERT_TRUE(shows_pages(file.get()));
  void* const map = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.get(), 0);
  ASSERT_NE(map, MAP_FAILED);
  const std::byte* const begin = static_cast<std::byte*>(map);
  EXPECT_TRUE(are_in_memory(begin, begin + size));
  test::drop_from_cache(file.get());
  if (test::cached_bytes(file.get(), size) == 0) {
    EXPECT_FALSE(are_in_memory(begin + 5, begin + 6));
    ASSERT_EQ(::posix_fadvise(file.get(), 0, 0, POSIX_FADV_RANDOM), 0);
    std::vector<std::byte> back(4096);
    const std::size_t page = 700;
    base::read_at(file.get(), page * 4096, back, path);
    EXPECT_TRUE(are_in_memory(begin + page * 4096 + 7, begin + (page + 1) * 4096));
    EXPECT_FALSE(are_in_memory(begin + page * 4096 - 1, begin + (page + 1) * 4096));
    EXPECT_FALSE(are_in_memory(begin + page * 4096, begin + (page + 1) * 4096 + 1));
    EXPECT_EQ(test::cached_bytes(file.get(), size), 4096U);
    std::vector<std::byte> all(size);
    base::read_at(file.get(), 0, all, path);
    drop_pages(file.get(), 6 * kFolioBytes, 6 * kFolioBytes + 1);
    EXPECT_TRUE(are_in_memory(begin, begin + 4 * kFolioBytes));
    EXPECT_FALSE(are_in_memory(begin, begin + size)) << "a page far behind is missing";
  }
  ::munmap(map, size);
}

TEST(AreMapped, SaysSoOfWhatThisProcessMapped) {
  const test::ScratchFolder scratch;
  const std::string path = scratch.file("a");
  const base::FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  const std::int64_t size = 4 * kFolioBytes;
  base::write_at(file.get(), 0, std::vector<std::byte>(static_cast<std::size_t>(size)), path);
  void* const map =
      ::mmap(nullptr, static_cast<std::size_t>(size), PROT_READ, MAP_SHARED, file.get(), 0);
  ASSERT_NE(map, MAP_FAILED);
  const std::byte* const begin = static_cast<std::byte*>(map);
  EXPECT_FALSE(are_mapped(begin, 0, size)) << "it is in memory only";
  ASSERT_EQ(map_in(begin, begin + 2 * kFolioBytes), 0);
  EXPECT_TRUE(are_mapped(begin, 0, 2 * kFolioBytes));
  EXPECT_FALSE(are_mapped(begin, kFolioBytes, size));
  ASSERT_EQ(map_in(begin + size - 1, begin + size), 0);
  EXPECT_FALSE(are_mapped(begin, 0, size)) << "a folio between the ends is not";
  ::munmap(map, static_cast<std::size_t>(size));
}

}  // namespace
}  // namespace chunkio::io
