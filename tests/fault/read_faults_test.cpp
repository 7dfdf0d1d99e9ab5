/// Short reads, interrupted reads and failing disks, under every chunk source.
///
/// This program replaces pread and preadv2 by versions that misbehave when they are told to, also
/// for libhdf5 below it.
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <chunkio/loader.hpp>

#include "errors.hpp"
#include "h5_files.hpp"
#include "pixels.hpp"
#include "scratch.hpp"

namespace {

/// What happens to reads of more than kSmall bytes; metadata and probes are left alone.
constexpr std::size_t kSmall = 64;
std::atomic<std::int64_t> g_reads{0};
std::atomic<std::int64_t> g_fail_from{-1};  // EIO at this read and all after it, until healed ...
std::atomic<std::int64_t> g_fail_count{0};  // ... so many of them
std::atomic<int> g_interrupt_every{0};      // EINTR at every n-th read
std::atomic<std::size_t> g_at_most{0};      // bytes a read returns at most; 0: no limit

void behave() {
  g_reads = 0;
  g_fail_from = -1;
  g_fail_count = 0;
  g_interrupt_every = 0;
  g_at_most = 0;
}

/// \returns bytes to read, or -1 with errno set.
ssize_t misbehave(std::size_t size) {
  if (size <= kSmall) return static_cast<ssize_t>(size);
  const std::int64_t read = g_reads.fetch_add(1);
  if (g_fail_from >= 0 && read >= g_fail_from && read < g_fail_from + g_fail_count) {
    errno = EIO;
    return -1;
  }
  if (g_interrupt_every > 0 && read % g_interrupt_every == 0) {
    errno = EINTR;
    return -1;
  }
  return static_cast<ssize_t>(g_at_most > 0 ? std::min(size, g_at_most.load()) : size);
}

}  // namespace

extern "C" {
ssize_t pread(int fd, void* buffer, std::size_t size, off_t offset) {
  const ssize_t allowed = misbehave(size);
  return allowed < 0 ? -1 : ::syscall(SYS_pread64, fd, buffer, allowed, offset);
}
ssize_t pread64(int fd, void* buffer, std::size_t size, off_t offset) {
  return pread(fd, buffer, size, offset);
}
ssize_t preadv2(int fd, const iovec* parts, int count, off_t offset, int flags) {
  if (count != 1) return ::syscall(SYS_preadv2, fd, parts, count, offset, 0L, flags);
  const ssize_t allowed = misbehave(parts->iov_len);
  if (allowed < 0) return -1;
  const iovec part{.iov_base = parts->iov_base, .iov_len = static_cast<std::size_t>(allowed)};
  return ::syscall(SYS_preadv2, fd, &part, 1, offset, 0L, flags);
}
ssize_t preadv64v2(int fd, const iovec* parts, int count, off_t offset, int flags) {
  return preadv2(fd, parts, count, offset, flags);
}
}

namespace chunkio {
namespace {

struct Case {
  std::string name;
  std::string file;
  SourceKind source = SourceKind::automatic;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class ReadFaultsTest : public testing::TestWithParam<Case> {
 protected:
  ReadFaultsTest() : path_(test::h5py_file(folder_, GetParam().file)) { behave(); }
  ~ReadFaultsTest() override { behave(); }

  [[nodiscard]] LoaderOptions options() const {
    return {.batch_size = 9,
            .seed = 3,
            .window_bytes = 4096,
            .num_threads = 2,
            .source = GetParam().source,
            .num_epochs = 1};
  }

  /// Rows delivered, each checked; also counts those that come more than once.
  static std::map<std::int64_t, int> drain(Loader& loader, std::int64_t epoch) {
    std::map<std::int64_t, int> rows;
    const std::int64_t bytes = loader.dataset().info().sample_bytes();
    for (const Batch& batch : loader.epoch(epoch)) {
      const std::byte* picture = batch.images().data();
      for (const std::int64_t row : batch.sample_ids()) {
        const auto expected = test::pattern_rows(row, 1, bytes);
        EXPECT_TRUE(std::equal(expected.begin(), expected.end(), picture)) << "row " << row;
        picture += bytes;
        ++rows[row];
      }
    }
    return rows;
  }

  test::ScratchFolder folder_;
  std::string path_;
};

TEST_P(ReadFaultsTest, ShortAndInterruptedReadsChangeNothing) {
  for (const std::size_t at_most : {std::size_t{1}, std::size_t{7}, std::size_t{1000}}) {
    for (const int interrupt_every : {0, 2, 3}) {
      behave();
      Loader loader(Dataset::open(path_), options());
      g_at_most = at_most;
      g_interrupt_every = interrupt_every;
      g_reads = 0;
      const auto rows = drain(loader, static_cast<std::int64_t>(at_most));
      EXPECT_EQ(rows.size(), 40U);
      EXPECT_GT(g_reads, 0);
    }
  }
}

TEST_P(ReadFaultsTest, AFailingDiskIsAnErrorAtWhicheverRead) {
  std::int64_t reads = 0;
  {
    Loader loader(Dataset::open(path_), options());
    g_reads = 0;
    (void)drain(loader, 0);
    reads = g_reads;
  }
  ASSERT_GT(reads, 0);
  for (std::int64_t at = 0; at < reads; ++at) {
    Loader loader(Dataset::open(path_), options());
    g_reads = 0;
    g_fail_count = 1'000'000;
    g_fail_from = at;
    try {
      const std::size_t delivered = drain(loader, 0).size();
      ADD_FAILURE() << "read " << at << " failed, and " << delivered << " rows came";
    } catch (const Error& error) {
      EXPECT_TRUE(error.code() == ErrorCode::io_failed || error.code() == ErrorCode::hdf5_failed)
          << error.what();
      const std::string message = error.what();
      EXPECT_NE(message.find(path_), std::string::npos) << message;
      EXPECT_NE(message.find("rows"), std::string::npos) << message;
      EXPECT_EQ(message.find('\n'), std::string::npos) << message;
      EXPECT_THROW((void)loader.next(), Error);
    }
    behave();
  }
}

TEST_P(ReadFaultsTest, SkippingLosesTheRowsItNamesAndNoOthers) {
  LoaderOptions skipping = options();
  skipping.on_error = OnError::skip;
  Loader loader(Dataset::open(path_), skipping);
  g_reads = 0;
  g_fail_from = 1;
  g_fail_count = 2;  // the way round the page cache, and the way through it
  const auto rows = drain(loader, 0);
  std::int64_t lost = 0;
  for (const SkippedRows& skipped : loader.skipped()) {
    lost += skipped.num_rows;
    for (std::int64_t row = skipped.first_row; row < skipped.first_row + skipped.num_rows; ++row) {
      EXPECT_FALSE(rows.contains(row)) << row;
    }
  }
  EXPECT_EQ(loader.epoch_stats(0).skipped_images, lost);
  EXPECT_EQ(static_cast<std::int64_t>(rows.size()) + lost, 40);
  behave();
  EXPECT_EQ(drain(loader, 5).size(), 40U);
}

INSTANTIATE_TEST_SUITE_P(Sources, ReadFaultsTest,
                         testing::Values(Case{"scatter", "whole_chunks", SourceKind::scatter},
                                         Case{"direct_unfiltered", "whole_chunks",
                                              SourceKind::direct},
                                         Case{"direct_deflate", "deflate", SourceKind::direct},
                                         Case{"direct_cut", "odd_chunks", SourceKind::direct},
                                         Case{"hdf5_unfiltered", "whole_chunks", SourceKind::hdf5},
                                         Case{"hdf5_deflate", "deflate", SourceKind::hdf5}),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace chunkio
