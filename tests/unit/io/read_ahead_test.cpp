#include "io/read_ahead.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/positional_io.hpp"
#include "support/cached_pages.hpp"
#include "support/noise_file.hpp"
#include "support/process_counts.hpp"
#include "support/scratch.hpp"

namespace chunkio::io {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

/// With and without large folios.
class ReadAheadTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    file_.drop_from_cache();
    if (file_.cached_bytes() != 0) GTEST_SKIP() << "this file system keeps its pages";
  }

  [[nodiscard]] bool is_cached(std::size_t begin, std::size_t end) const {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const std::vector<bool> pages = test::cached_pages(file_.file->fd(), file_.bytes.size());
    return std::all_of(pages.begin() + static_cast<std::ptrdiff_t>(begin / page),
                       pages.begin() + static_cast<std::ptrdiff_t>((end - 1) / page + 1),
                       [](bool cached) { return cached; });
  }
  [[nodiscard]] bool will_be_cached(std::size_t begin, std::size_t end) const {
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!is_cached(begin, end)) {
      if (std::chrono::steady_clock::now() > patience) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }

  test::ScratchFolder folder_;
  test::NoiseFile file_{folder_.file("file"), 9 * kMiB + 5};
  const std::size_t size_ = file_.bytes.size();
};

TEST_P(ReadAheadTest, BringsWhatIsAskedFor) {
  ReadAhead read_ahead(GetParam());
  read_ahead.start(file_.file, 3'000'000, 8'000'001);
  EXPECT_TRUE(will_be_cached(3'000'000, 8'000'001));
  EXPECT_LE(file_.cached_bytes(), 8 * kMiB) << "no more than the huge pages that hold it";
}

TEST_P(ReadAheadTest, BringsTheEndOfTheFileToo) {
  ReadAhead read_ahead(GetParam());
  const auto end = static_cast<std::int64_t>(size_);
  read_ahead.start(file_.file, end - 3'000'000, end);
  EXPECT_TRUE(will_be_cached(size_ - 3'000'000, size_));
}

TEST_P(ReadAheadTest, ReadsRoundWhatIsThereAlready) {
  std::byte byte{};
  base::read_at(file_.file->fd(), 4'000'000, {&byte, 1}, "file");
  ReadAhead read_ahead(GetParam());
  read_ahead.start(file_.file, 2'500'000, 7'000'000);
  EXPECT_TRUE(will_be_cached(2'500'000, 7'000'000));
}

TEST_P(ReadAheadTest, ReadsWhatIsMissingBetweenEndsThatAreThere) {
  ASSERT_EQ(::posix_fadvise(file_.file->fd(), 0, 0, POSIX_FADV_RANDOM), 0);
  std::byte byte{};
  for (const std::int64_t at : {1'000'000, 8'000'000}) {
    base::read_at(file_.file->fd(), at, {&byte, 1}, "file");
  }
  ASSERT_LT(file_.cached_bytes(), 5 * kMiB);
  ReadAhead read_ahead(GetParam());
  read_ahead.start(file_.file, 1'000'000, 8'000'001);
  EXPECT_TRUE(will_be_cached(1'000'000, 8'000'001));
}

TEST_P(ReadAheadTest, AFileByItselfAsksTheKernel) {
  const std::vector<ByteRange> ranges{{1'000'000, 1'004'000}, {5'000'000, 5'000'100}};
  EXPECT_EQ(file_.file->prefetch(ranges), nullptr);
  for (const ByteRange& range : ranges) {
    EXPECT_TRUE(
        will_be_cached(static_cast<std::size_t>(range.begin), static_cast<std::size_t>(range.end)));
  }
  EXPECT_LE(file_.cached_bytes(), kMiB);
}

TEST_P(ReadAheadTest, FetchingBringsTheSame) {
  ReadAhead read_ahead(GetParam());
  const std::int64_t threads = test::settled_threads();
  read_ahead.fetch(file_.file, 1'000'000, 9'000'000);
  EXPECT_EQ(test::settled_threads(), threads);
  EXPECT_TRUE(will_be_cached(1'000'000, 9'000'000));
}

TEST_P(ReadAheadTest, HasThreadsOnlyForLargeFoliosThatAreMissing) {
  std::thread([] {}).join();  // ThreadSanitizer starts one of its own with the first
  const std::int64_t threads = test::settled_threads();
  {
    ReadAhead read_ahead(GetParam());
    read_ahead.start(file_.file, 0, 100'000);
    EXPECT_EQ(test::settled_threads(), threads) << "a small range";
    ASSERT_TRUE(will_be_cached(0, 100'000));
    read_ahead.start(file_.file, 2'500'000, 7'000'000);
    EXPECT_EQ(test::settled_threads(), threads + (GetParam() ? 12 : 0));
    ASSERT_TRUE(will_be_cached(2'500'000, 7'000'000));
  }
  EXPECT_EQ(test::settled_threads(), threads);
  ReadAhead again(GetParam());
  again.start(file_.file, 2'500'000, 7'000'000);
  EXPECT_EQ(test::settled_threads(), threads) << "it is there";
}

TEST_P(ReadAheadTest, EndsAtOnceHoweverMuchIsQueued) {
  const std::int64_t beyond = 100 * static_cast<std::int64_t>(size_);
  const auto before = std::chrono::steady_clock::now();
  {
    ReadAhead read_ahead(GetParam());
    for (int i = 0; i < 100'000; ++i) {
      // Beyond the end of the file: never there, never read.
      read_ahead.start(file_.file, beyond, beyond + 5'000'000);
    }
  }
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(20));
  EXPECT_EQ(file_.file.use_count(), 1);
}

INSTANTIATE_TEST_SUITE_P(Folios, ReadAheadTest, testing::Bool(),
                         [](const auto& test) { return test.param ? "Large" : "Small"; });

}  // namespace
}  // namespace chunkio::io
