#include "h5pack/tune/machine_meter.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <numeric>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <chunkio/error.hpp>
#include <chunkio/loader.hpp>

#include "cli/byte_size.hpp"
#include "cli/quote.hpp"
#include "cli/stop_signal.hpp"

namespace h5pack {
namespace {

using chunkio::Error;
using chunkio::ErrorCode;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kSmallRequest = 4096;  // also what O_DIRECT is aligned to
constexpr std::int64_t kLargeRequest = std::int64_t{4} << 20;
constexpr std::int64_t kScratchBytes = std::int64_t{256} << 20;
/// Less is read in a moment, and says nothing.
constexpr std::int64_t kSmallestFile = std::int64_t{1} << 20;
constexpr std::int64_t kMeasuredBytes = std::int64_t{128} << 20;
constexpr int kManyThreads = 16;
/// Of which two seconds reach a part; the product of two such numbers fits.
constexpr std::int64_t kMostBlocks = std::int64_t{1} << 31;

[[noreturn]] void fail(const std::string& what, const std::string& name, int error) {
  throw Error(error == ENOENT                      ? ErrorCode::not_found
              : error == ENOSPC || error == EDQUOT ? ErrorCode::no_space
                                                   : ErrorCode::io_failed,
              "cannot " + what + " " + cli::quote(name) + ": " + std::strerror(error));
}

struct FreeAligned {
  void operator()(void* memory) const noexcept { std::free(memory); }
};
using AlignedBuffer = std::unique_ptr<std::byte, FreeAligned>;

AlignedBuffer make_buffer(std::int64_t bytes) {
  void* const memory = std::aligned_alloc(kSmallRequest, static_cast<std::size_t>(bytes));
  if (memory == nullptr) throw std::bad_alloc();
  return AlignedBuffer(static_cast<std::byte*>(memory));
}

/// Opened with O_DIRECT where the file system takes it. \returns the descriptor; sets `direct`.
int open_direct(const std::string& path, int flags, bool& direct) {
  direct = true;
  int descriptor = ::open(path.c_str(), flags | O_DIRECT | O_CLOEXEC, 0600);
  if (descriptor < 0 && errno == EINVAL) {
    direct = false;
    descriptor = ::open(path.c_str(), flags | O_CLOEXEC, 0600);
  }
  return descriptor;
}

/// What reads of one size by so many threads came to.
struct Reads {
  std::int64_t requests = 0;
  double seconds = 0;
};

/// Each thread reads blocks in an order of its own making until the time is over. No block comes
/// twice before all have come, so that no cache on the way helps more than it must.
Reads read_for(const MeteredFile& file, std::int64_t bytes, int num_threads, double seconds) {
  const std::int64_t blocks = std::clamp<std::int64_t>(file.size() / bytes, 1, kMostBlocks);
  // A step that has no factor in common with the number of blocks reaches all of them.
  std::int64_t step = static_cast<std::int64_t>(static_cast<double>(blocks) * 0.618) | 1;
  while (std::gcd(step, blocks) != 1) step += 2;
  std::atomic<std::int64_t> next{0};
  std::atomic<std::int64_t> requests{0};
  std::atomic<int> error{0};
  const Clock::time_point start = Clock::now();
  const Clock::time_point end =
      start + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  const auto work = [&](const AlignedBuffer& buffer) {
    while (Clock::now() < end && error == 0 && cli::StopSignal::received() == 0) {
      const std::int64_t block = next.fetch_add(1) % blocks * step % blocks;
      const ssize_t got = ::pread(file.descriptor(), buffer.get(), static_cast<std::size_t>(bytes),
                                  static_cast<off_t>(block * bytes));
      if (got < 0 && errno == EINTR) continue;
      if (got < bytes) {
        error = got < 0 ? errno : EIO;
        return;
      }
      ++requests;
    }
  };
  // Where memory or processes are short, with the threads there are.
  const AlignedBuffer own = make_buffer(bytes);
  std::vector<AlignedBuffer> buffers;
  {
    std::vector<std::jthread> threads;
    buffers.reserve(static_cast<std::size_t>(num_threads));
    threads.reserve(buffers.capacity());
    try {
      for (int i = 1; i < num_threads; ++i) {
        buffers.push_back(make_buffer(bytes));
        threads.emplace_back([&work, &buffer = buffers.back()] { work(buffer); });
      }
    } catch (const std::bad_alloc&) {
    } catch (const std::system_error&) {
    }
    work(own);
  }
  cli::StopSignal::check();
  if (error != 0) fail("read", file.name(), error);
  return {requests, std::chrono::duration<double>(Clock::now() - start).count()};
}

/// What a Loader did in an epoch whose images are in memory.
chunkio::LoaderStats stats_of_second_epoch(const chunkio::Dataset& dataset, std::int64_t rows,
                                           std::int64_t num_threads) {
  const std::int64_t sample_bytes = dataset.info().sample_bytes();
  chunkio::LoaderOptions options;
  options.batch_size = std::clamp<std::int64_t>((std::int64_t{8} << 20) / sample_bytes, 1, rows);
  options.order.window_bytes = std::int64_t{16} << 20;
  options.io.num_threads = num_threads;
  options.io.num_epochs = 2;
  options.io.source = dataset.info().stored.filters.empty() ? chunkio::SourceKind::automatic
                                                            : chunkio::SourceKind::direct;
  options.rows = chunkio::RowSelection(std::vector<chunkio::RowRange>{{0, rows}});
  chunkio::Loader loader(dataset, options);
  for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
    loader.start_epoch(epoch);
    while (loader.next()) cli::StopSignal::check();
  }
  return loader.epoch_stats(1);
}

}  // namespace

MeteredFile::MeteredFile(int descriptor, std::int64_t size, bool direct, std::string name)
    : descriptor_(descriptor), size_(size), direct_(direct), name_(std::move(name)) {}

MeteredFile::MeteredFile(MeteredFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_),
      direct_(other.direct_),
      name_(std::move(other.name_)) {}

MeteredFile::~MeteredFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

MeteredFile MeteredFile::existing(const std::string& path) {
  bool direct = false;
  const int descriptor = open_direct(path, O_RDONLY, direct);
  if (descriptor < 0) fail("open", path, errno);
  MeteredFile file(descriptor, 0, direct, path);
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) fail("inspect", path, errno);
  file.size_ = status.st_size;
  if (file.size_ < kSmallestFile) {
    throw Error(ErrorCode::invalid_argument,
                cli::quote(path) + " of " + cli::format_bytes(file.size_) +
                    " is too small to measure a disk with; name a kind of disk with --disk");
  }
  return file;
}

MeteredFile MeteredFile::scratch(const std::string& folder) {
  bool direct = false;
  const int descriptor = open_direct(folder, O_TMPFILE | O_RDWR, direct);
  if (descriptor < 0) fail("make a file to measure the disk with in", folder, errno);
  MeteredFile file(descriptor, kScratchBytes, direct, folder);
  const AlignedBuffer buffer = make_buffer(kLargeRequest);
  // Noise, since a disk may store less than it is given.
  std::uint64_t state = 88172645463325252ULL;
  for (std::int64_t at = 0; at < kScratchBytes; at += kLargeRequest) {
    cli::StopSignal::check();
    for (std::int64_t i = 0; i < kLargeRequest; i += 8) {
      state ^= state << 13;
      state ^= state >> 7;
      state ^= state << 17;
      std::memcpy(buffer.get() + i, &state, sizeof state);
    }
    for (std::int64_t done = 0; done < kLargeRequest;) {
      const ssize_t put =
          ::pwrite(descriptor, buffer.get() + done, static_cast<std::size_t>(kLargeRequest - done),
                   static_cast<off_t>(at + done));
      if (put < 0 && errno != EINTR) fail("write to", folder, errno);
      done += std::max<ssize_t>(put, 0);
    }
  }
  if (::fdatasync(descriptor) != 0) fail("write to", folder, errno);
  return file;
}

MeasuredDisk measure_disk(const MeteredFile& file, double seconds) {
  if (!file.direct()) {
    ::posix_fadvise(file.descriptor(), 0, 0, POSIX_FADV_DONTNEED);
  }
  const double part = seconds / 10;
  const Reads one = read_for(file, kSmallRequest, 1, 2 * part);
  const Reads many = read_for(file, kSmallRequest, kManyThreads, 3 * part);
  // Four blocks at least, for which threads do not wait for each other.
  const std::int64_t large =
      std::clamp(file.size() / 4 / kSmallRequest * kSmallRequest, kSmallRequest, kLargeRequest);
  double bandwidth = 0;
  for (const auto& [threads, share] : {std::pair{1, 2.0}, {4, 1.5}, {kManyThreads, 1.5}}) {
    const Reads reads = read_for(file, large, threads, share * part);
    bandwidth = std::max(bandwidth, static_cast<double>(reads.requests * large) / reads.seconds);
  }
  const double latency = one.seconds / static_cast<double>(std::max<std::int64_t>(1, one.requests));
  const double together = static_cast<double>(many.requests) / many.seconds;
  MeasuredDisk measured;
  measured.limit.bytes_per_second = std::clamp(bandwidth, 1.0, 1e15);
  measured.limit.request_seconds =
      std::clamp(latency - static_cast<double>(kSmallRequest) / bandwidth, 0.0, 60.0);
  measured.limit.queue_depth =
      std::clamp<std::int64_t>(std::llround(together * latency), 1, kManyThreads);
  measured.method = file.direct() ? "reads bypassing the page cache"
                                  : "reads through the page cache, since the file system takes no "
                                    "others: parts of the file may have come from memory";
  return measured;
}

chunkio::MachineRates measure_rates(const chunkio::Dataset& dataset,
                                    const chunkio::MachineRates& defaults) {
  const chunkio::DatasetInfo& info = dataset.info();
  const std::int64_t rows =
      std::clamp<std::int64_t>(kMeasuredBytes / info.sample_bytes(), 1, info.num_samples);
  chunkio::MachineRates rates = defaults;
  const chunkio::LoaderStats one = stats_of_second_epoch(dataset, rows, 1);
  const auto bytes = static_cast<double>(one.bytes_delivered);
  if ((info.encoded || !info.stored.filters.empty()) && one.decode_seconds > 0) {
    rates.decode_bytes_per_second = bytes / one.decode_seconds;
  }
  if (info.encoded) return rates;
  if (one.copy_seconds > 0) {
    rates.copy_bytes_per_second = bytes / one.copy_seconds;
    // Contained in what was measured.
    rates.row_seconds = 0;
    rates.group_seconds = 0;
  }
  const std::int64_t threads = std::min<std::int64_t>(rates.num_cpus, 8);
  const chunkio::LoaderStats all = stats_of_second_epoch(dataset, rows, threads);
  if (all.copy_seconds > 0) {
    rates.memory_bytes_per_second =
        static_cast<double>(all.bytes_delivered) * static_cast<double>(threads) / all.copy_seconds;
  }
  return rates;
}

}  // namespace h5pack
