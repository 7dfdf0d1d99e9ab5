#include "chunkbench/ceilings.hpp"

#include <fcntl.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <filesystem>

#include "base/positional_io.hpp"
#include "base/streaming_copy.hpp"
#include "cli/stop_signal.hpp"
#include "harness/cold_file.hpp"
#include "harness/in_parallel.hpp"
#include "harness/noise.hpp"
#include "io/disk_limiter.hpp"

namespace bench {
namespace {

using chunkio::base::FileDescriptor;
using chunkio::base::HostBuffer;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kReadBytes = std::int64_t{4} << 20;
constexpr std::int64_t kMinThreads = 4;
constexpr double kSeconds = 1;
/// More than a last-level cache holds.
constexpr std::int64_t kCopyBytes = std::int64_t{256} << 20;

}  // namespace

std::optional<double> measure_storage(const ChunkFile& measured, std::int64_t threads,
                                      const TrialSettings& settings) {
  const std::string& path = measured.path;
  const auto bytes = static_cast<std::int64_t>(std::filesystem::file_size(path));
  if (put_out_of_page_cache(path) > bytes / 100) return std::nullopt;
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT));
  if (!file.valid()) file = FileDescriptor::open_for_reading(path);
  const std::int64_t reads = bytes / kReadBytes;
  // A file smaller than a read is read once, by its whole pages.
  const std::int64_t one = reads > 0 ? kReadBytes : bytes / 4096 * 4096;
  if (one == 0) return std::nullopt;
  std::atomic<std::int64_t> read_bytes{0};
  std::atomic<std::int64_t> next{0};
  std::optional<chunkio::io::DiskLimiter> limiter;
  if (settings.limit) limiter.emplace(*settings.limit);
  threads = std::max(threads, kMinThreads);
  const Clock::time_point start = Clock::now();
  in_parallel(threads * 32, threads, [&] {
    return [&, buffer = HostBuffer(static_cast<std::size_t>(one))](std::int64_t) mutable {
      for (std::int64_t i = next++; i < std::max<std::int64_t>(reads, 1); i = next++) {
        if (seconds_since(start) > kSeconds || cli::StopSignal::received() != 0) return;
        if (limiter) limiter->transfer(one, {}, i * one);
        chunkio::base::read_at(file.get(), i * one,
                               buffer.bytes().first(static_cast<std::size_t>(one)), path);
        read_bytes += one;
      }
    };
  });
  cli::StopSignal::check();
  return static_cast<double>(read_bytes) / seconds_since(start);
}

MemoryCeiling::MemoryCeiling(std::int64_t sample_bytes, std::int64_t threads, std::uint64_t seed,
                             std::int64_t memory)
    : sample_bytes_(static_cast<std::size_t>(sample_bytes)),
      threads_(threads),
      from_(static_cast<std::size_t>(
                std::max<std::int64_t>(std::min(kCopyBytes, memory / 8) / sample_bytes, 1)) *
            sample_bytes_),
      to_(from_.size()) {
  fill_with_noise(from_.bytes());
  const auto rows = static_cast<std::int64_t>(from_.size() / sample_bytes_);
  order_ =
      chunkio::EpochOrder(chunkio::RowGroups(1, rows),
                          {.mode = chunkio::OrderMode::random, .seed = seed, .batch_size = rows}, 0)
          .batch(0);
  // The first copy pays for the pages.
  static_cast<void>(measure());
}

double MemoryCeiling::measure() const {
  const Clock::time_point start = Clock::now();
  in_parallel(static_cast<std::int64_t>(order_.size()), threads_, [&] {
    return [&](std::int64_t place) {
      const auto i = static_cast<std::size_t>(place);
      chunkio::base::streaming_copy(
          to_.data() + i * sample_bytes_,
          from_.data() + static_cast<std::size_t>(order_[i]) * sample_bytes_, sample_bytes_);
    };
  });
  chunkio::base::store_fence();
  return static_cast<double>(from_.size()) / seconds_since(start);
}

}  // namespace bench
