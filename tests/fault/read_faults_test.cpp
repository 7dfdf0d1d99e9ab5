/// Short reads, interrupted reads and failing disks, under every chunk source.
///
/// This program replaces pread, preadv2 and madvise by versions that misbehave when they are told
/// to, also for libhdf5 below it.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <chunkio/loader.hpp>
#include <chunkio/verify.hpp>

#include "base/access.hpp"
#include "h5/dataset_impl.hpp"
#include "io/direct_file.hpp"
#include "sources/source_select.hpp"
#include "support/delivered_rows.hpp"
#include "support/errors.hpp"
#include "support/h5_files.hpp"
#include "support/pixels.hpp"
#include "support/placed_rows.hpp"
#include "support/scratch.hpp"

namespace {

/// What happens to reads of more than kSmall bytes; metadata and probes are left alone.
constexpr std::size_t kSmall = 64;
std::atomic<std::int64_t> g_reads{0};
std::atomic<std::int64_t> g_fail_from{-1};  // EIO at this read and all after it, until healed ...
std::atomic<std::int64_t> g_fail_count{0};  // ... so many of them
std::atomic<int> g_interrupt_every{0};      // EINTR at every n-th read
std::atomic<std::size_t> g_at_most{0};      // bytes a read returns at most; 0: no limit
std::atomic<bool> g_old_kernel{false};      // without MADV_POPULATE_READ

void behave() {
  g_reads = 0;
  g_fail_from = -1;
  g_fail_count = 0;
  g_interrupt_every = 0;
  g_at_most = 0;
  g_old_kernel = false;
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

// By their names for the linker: headers may give pread the name pread64 (_FILE_OFFSET_BITS=64).
extern "C" {
ssize_t faulty_pread(int fd, void* buffer, std::size_t size, off_t offset) __asm__("pread");
ssize_t faulty_pread64(int fd, void* buffer, std::size_t size, off_t offset) __asm__("pread64");
ssize_t faulty_preadv2(int fd, const iovec* parts, int count, off_t offset,
                       int flags) __asm__("preadv2");
ssize_t faulty_preadv64v2(int fd, const iovec* parts, int count, off_t offset,
                          int flags) __asm__("preadv64v2");

ssize_t faulty_pread(int fd, void* buffer, std::size_t size, off_t offset) {
  const ssize_t allowed = misbehave(size);
  return allowed < 0 ? -1 : ::syscall(SYS_pread64, fd, buffer, allowed, offset);
}
ssize_t faulty_pread64(int fd, void* buffer, std::size_t size, off_t offset) {
  return faulty_pread(fd, buffer, size, offset);
}
ssize_t faulty_preadv2(int fd, const iovec* parts, int count, off_t offset, int flags) {
  if (count != 1) return ::syscall(SYS_preadv2, fd, parts, count, offset, 0L, flags);
  const ssize_t allowed = misbehave(parts->iov_len);
  if (allowed < 0) return -1;
  const iovec part{.iov_base = parts->iov_base, .iov_len = static_cast<std::size_t>(allowed)};
  return ::syscall(SYS_preadv2, fd, &part, 1, offset, 0L, flags);
}
ssize_t faulty_preadv64v2(int fd, const iovec* parts, int count, off_t offset, int flags) {
  return faulty_preadv2(fd, parts, count, offset, flags);
}
int madvise(void* begin, std::size_t size, int advice) noexcept {
  if (advice == 22 /* MADV_POPULATE_READ: the mapped source's read */) {
    if (g_old_kernel) {
      errno = EINVAL;
      return -1;
    }
    if (misbehave(size) < 0) return -1;
  }
  return static_cast<int>(::syscall(SYS_madvise, begin, size, advice));
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
            .order = {.window_bytes = 4096},
            .io = {.num_threads = 2, .source = GetParam().source, .num_epochs = 1}};
  }

  /// Rows delivered, each checked; also counts those that come more than once.
  static std::map<std::int64_t, int> drain(Loader& loader, std::int64_t epoch) {
    std::map<std::int64_t, int> rows;
    for (const std::int64_t row : test::delivered_rows(loader, epoch)) ++rows[row];
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
      // How much is read ahead is a matter of luck: there may be fewer reads this time.
      if (g_reads > at)
        ADD_FAILURE() << "read " << at << " failed, and " << delivered << " rows came";
    } catch (const Error& error) {
      EXPECT_TRUE(error.code() == ErrorCode::io_failed || error.code() == ErrorCode::hdf5_failed)
          << error.what();
      const std::string message = error.what();
      EXPECT_NE(message.find(path_), std::string::npos) << message;
      EXPECT_NE(message.find(" of images in "), std::string::npos) << message;
      const std::size_t place = message.find("rows ");
      ASSERT_NE(place, std::string::npos) << message;
      int first = -1;
      int last = -1;
      ASSERT_EQ(std::sscanf(message.c_str() + place, "rows %d to %d", &first, &last), 2) << message;
      EXPECT_LE(first, last) << message;
      EXPECT_LT(last, 40) << message;
      EXPECT_EQ(message.find('\n'), std::string::npos) << message;
      EXPECT_THROW((void)loader.next(), Error);
    }
    behave();
  }
}

TEST_P(ReadFaultsTest, SkippingLosesTheRowsItNamesAndNoOthers) {
  LoaderOptions skipping = options();
  skipping.io.on_error = OnError::skip;
  Loader loader(Dataset::open(path_), skipping);
  g_reads = 0;
  g_fail_from = 1;
  g_fail_count = 2;  // the way that bypasses the page cache, and the way through it
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

TEST_P(ReadFaultsTest, AFileCutShortWhileItIsReadEndsInAnErrorAlsoIfSkippingIsAllowed) {
  for (const bool old_kernel : {false, true}) {
    for (const OnError on_error : {OnError::raise, OnError::skip}) {
      const std::string path = folder_.file("cut.h5");
      std::filesystem::copy_file(path_, path, std::filesystem::copy_options::overwrite_existing);
      g_old_kernel = old_kernel;
      LoaderOptions cut = options();
      cut.io.on_error = on_error;
      cut.io.num_epochs = 0;
      Loader loader(Dataset::open(path), cut);
      EXPECT_EQ(drain(loader, 0).size(), 40U);
      std::filesystem::resize_file(path, 2000);
      try {
        // What was read ahead is still right; drain() compares it.
        for (std::int64_t epoch = 1; epoch < 100; ++epoch) (void)drain(loader, epoch);
        ADD_FAILURE() << "a file cut short went on";
      } catch (const Error& error) {
        const std::string message = error.what();
        EXPECT_TRUE(error.code() == ErrorCode::io_failed || error.code() == ErrorCode::corrupt_data)
            << message;
        EXPECT_NE(message.find(path), std::string::npos) << message;
      }
      behave();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sources, ReadFaultsTest,
                         testing::Values(Case{"mapped", "whole_chunks", SourceKind::mapped},
                                         Case{"scatter", "whole_chunks", SourceKind::scatter},
                                         Case{"direct_unfiltered", "whole_chunks",
                                              SourceKind::direct},
                                         Case{"direct_deflate", "deflate", SourceKind::direct},
                                         Case{"direct_cut", "odd_chunks", SourceKind::direct},
                                         Case{"hdf5_unfiltered", "whole_chunks", SourceKind::hdf5},
                                         Case{"hdf5_deflate", "deflate", SourceKind::hdf5}),
                         [](const auto& instance) { return instance.param.name; });

/// Where the kernel cannot be asked for pages, touching those that are gone raises SIGBUS.
TEST(MappedFaultsTest, OnlyVisitsOfPagesThatAreGoneFail) {
  behave();
  const test::ScratchFolder folder;
  const std::string path = folder.file("pictures.h5");
  test::write_packed(path, {.num_samples = 64, .height = 64, .width = 64, .chunk_samples = 8});
  const Dataset dataset = Dataset::open(path);
  const std::int64_t sample_bytes = dataset.info().sample_bytes();
  const auto source =
      sources::select_source(internal::Access::impl(dataset),
                             internal::Access::impl(dataset)->leading, {.kind = SourceKind::mapped})
          .source;
  const auto place = [&](std::uint32_t row) {
    test::place_rows(*source, {.first_row = 0, .num_rows = 64}, {row}, dataset);
  };
  const auto time = std::filesystem::last_write_time(path);
  const std::vector<std::uint8_t> bytes = test::read_bytes(path);
  const std::int64_t begin = internal::Access::impl(dataset)->leading->linear_offset.value();

  g_old_kernel = true;
  place(63);
  std::filesystem::resize_file(path, static_cast<std::uintmax_t>(begin + 32 * sample_bytes));
  for (int visit = 0; visit < 2; ++visit) {
    test::expect_error(ErrorCode::io_failed, {path, "rows 63 to 63 of images", "truncated"},
                       [&] { place(63); });
    test::expect_error(ErrorCode::corrupt_data, {path, "was changed"}, [&] { place(0); });
  }
  // As if it had been a disk that failed for a while.
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
  std::filesystem::last_write_time(path, time);
  for (const std::uint32_t row : {0U, 63U, 40U}) place(row);
  behave();
}

// ---- Verifying all chunks ----

class VerifyFaultsTest : public testing::Test {
 protected:
  VerifyFaultsTest() {
    behave();
    test::write_packed(path_, {.num_samples = 100, .chunk_samples = 7});
  }
  ~VerifyFaultsTest() override { behave(); }

  static std::vector<DamagedChunk> damage_of(const Dataset& dataset) {
    return verify_chunks(dataset, {.num_threads = 1}).damaged;
  }

  test::ScratchFolder folder_;
  std::string path_ = folder_.file("pictures.h5");
};

TEST_F(VerifyFaultsTest, ShortAndInterruptedReadsAreNoDamage) {
  const Dataset dataset = Dataset::open(path_);
  for (const std::size_t at_most : {65U, 512U, 4096U}) {
    behave();
    g_at_most = at_most;
    g_interrupt_every = 3;
    EXPECT_TRUE(damage_of(dataset).empty()) << at_most;
    EXPECT_GT(g_reads, 1);
  }
}

TEST_F(VerifyFaultsTest, OnlyWhatCannotBeReadIsDamaged) {
  const Dataset dataset = Dataset::open(path_);
  std::size_t most = 0;
  for (std::int64_t failures = 0; failures <= 40; ++failures) {
    behave();
    g_fail_from = 0;
    g_fail_count = failures;
    const std::vector<DamagedChunk> damaged = damage_of(dataset);
    // The disk recovers: chunks from the first on are lost, and none behind a good one.
    for (std::size_t i = 0; i < damaged.size(); ++i) {
      EXPECT_EQ(damaged[i].chunk, static_cast<std::int64_t>(i)) << failures;
      EXPECT_EQ(damaged[i].code, ErrorCode::io_failed);
      EXPECT_NE(damaged[i].reason.find("rows " + std::to_string(7 * i) + " to"), std::string::npos);
    }
    EXPECT_GE(damaged.size(), most);
    most = damaged.size();
  }
  EXPECT_EQ(most, 15U);
  behave();
  EXPECT_TRUE(damage_of(dataset).empty());
}

TEST_F(VerifyFaultsTest, ThePageCacheDoesNotVouchForTheDisk) {
  const Dataset dataset = Dataset::open(path_);
  if (!io::open_direct(internal::Access::impl(dataset)->bytes)) {
    GTEST_SKIP() << "this file system has no O_DIRECT";
  }
  static_cast<void>(test::read_bytes(path_));  // now it is in the page cache
  behave();
  g_fail_from = 0;
  g_fail_count = 2;  // all chunks in one read, and the first one alone
  const std::vector<DamagedChunk> damaged = damage_of(dataset);
  ASSERT_EQ(damaged.size(), 1U);
  EXPECT_EQ(damaged.front().chunk, 0);
  EXPECT_EQ(damaged.front().code, ErrorCode::io_failed);
}

}  // namespace
}  // namespace chunkio
