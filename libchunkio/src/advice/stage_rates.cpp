#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <chunkio/bottleneck.hpp>
#include <chunkio/error.hpp>

#include "advice/bottleneck.hpp"
#include "advice/prediction.hpp"
#include "base/access.hpp"
#include "base/cpus.hpp"
#include "base/host_memory.hpp"
#include "base/run_on_threads.hpp"
#include "h5/dataset_impl.hpp"
#include "h5/shard_set.hpp"
#include "io/direct_file.hpp"
#include "io/disk_limiter.hpp"
#include "io/local_file.hpp"
#include "io/page_cache.hpp"
#include "io/range_reader.hpp"
#include "read/open_arrays.hpp"

namespace chunkio {
namespace {

constexpr double kMaxSeconds = 60;
/// Pixels that are decoded and copied over and over: more than caches of processors hold.
constexpr std::int64_t kPixelBytes = std::int64_t{64} << 20;
constexpr std::int64_t kLeastRequest = std::int64_t{64} << 10;
constexpr std::int64_t kLargestRequest = std::int64_t{16} << 20;
/// Requests that are so many times as large tell latency from bandwidth.
constexpr std::int64_t kMuchLarger = 8;
/// Small enough for its latency to be all that it takes.
constexpr std::int64_t kPage = 4096;
/// Of the file, to be asked whether the page cache has them.
constexpr std::int64_t kSampledPages = 1024;

/// The same in every run.
using Random = std::mt19937_64;

std::int64_t draw_below(Random& random, std::int64_t bound) {
  return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(bound));
}

/// Calls `work(thread, is_over)` on `num_threads` threads, until `seconds` are over or one of them
/// has thrown. \returns the wall time.
double on_threads(std::int64_t num_threads, double seconds,
                  const std::function<void(std::int64_t, const std::function<bool()>&)>& work) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  const auto since = [start] {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  base::run_on_threads(num_threads, [&](std::int64_t thread, const std::stop_token& stop) {
    work(thread, [&] { return stop.stop_requested() || since() >= seconds; });
  });
  return since();
}

using Files = std::vector<std::shared_ptr<const Dataset::Impl>>;

double cached_share(const Files& files) {
  Random random(1);
  std::int64_t cached = 0;
  for (std::int64_t i = 0; i < kSampledPages; ++i) {
    const ByteSource& bytes =
        *files[static_cast<std::size_t>(draw_below(random, std::ssize(files)))]->bytes;
    const std::int64_t place = draw_below(random, bytes.size());
    const io::LocalFile* const file = io::as_local_file(bytes);
    if (file != nullptr && io::has_page(file->fd(), place)) ++cached;
  }
  return static_cast<double>(cached) / static_cast<double>(kSampledPages);
}

/// Files, read at random places, as they are or as a slower disk would serve them.
class Disk {
 public:
  using Clock = io::DiskLimiter::Clock;

  /// \param limit  a slower disk that is meant; or none.
  Disk(const Files& files, const std::optional<DiskLimit>& limit) : limit_(limit) {
    for (const auto& file : files) {
      const auto direct = io::open_direct(file->bytes);
      direct_ = direct_ && direct != nullptr;
      files_.push_back(direct ? direct : file->bytes);
    }
    become_idle();
  }

  /// A simulated disk is no longer busy with what it was asked for.
  void become_idle() {
    if (limit_) slower_ = std::make_unique<io::DiskLimiter>(*limit_);
  }

  [[nodiscard]] bool direct() const noexcept { return direct_; }

  /// Of requests of `bytes` to any of the files.
  [[nodiscard]] std::size_t scratch_bytes(std::int64_t bytes) const {
    std::size_t most = 0;
    for (const auto& file : files_) {
      most = std::max(most, io::RangeReader(*file).scratch_bytes(bytes));
    }
    return most;
  }

  /// One request, at a multiple of `alignment`. Waits for it, but not beyond `end`.
  /// \returns when it is there, which may be later. Thread-safe.
  Clock::time_point read(std::int64_t bytes, std::int64_t alignment, Random& random,
                         std::span<std::byte> scratch, Clock::time_point end,
                         ReadCost& cost) const {
    const ByteSource& file =
        *files_[static_cast<std::size_t>(draw_below(random, std::ssize(files_)))];
    const std::int64_t size = std::min(bytes, file.size());
    const std::int64_t place = draw_below(random, file.size() - size + 1);
    const std::int64_t offset = place / alignment * alignment;
    const Clock::time_point arrives = slower_ ? slower_->submit(size, offset) : Clock::now();
    static_cast<void>(io::RangeReader(file).read({offset, offset + size}, scratch, {}, cost));
    if (slower_) slower_->wait_until(std::min(arrives, end), {});
    return std::max(arrives, Clock::now());
  }

 private:
  std::optional<DiskLimit> limit_;
  std::vector<std::shared_ptr<const ByteSource>> files_;
  bool direct_ = true;  // they bypass the page cache
  std::unique_ptr<io::DiskLimiter> slower_;
};

Disk::Clock::time_point in_seconds(double seconds) {
  return Disk::Clock::now() +
         std::chrono::duration_cast<Disk::Clock::duration>(std::chrono::duration<double>(seconds));
}

double seconds_between(Disk::Clock::time_point begin, Disk::Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

/// Bytes a second, by requests of `request_bytes` from each of the threads.
double measure_bandwidth(const Disk& disk, double seconds, std::int64_t num_threads,
                         std::int64_t request_bytes) {
  const auto start = Disk::Clock::now();
  const auto end = in_seconds(seconds);
  std::mutex mutex;  // guards what follows
  std::int64_t bytes = 0;
  Disk::Clock::time_point last = start;
  on_threads(num_threads, seconds, [&](std::int64_t thread, const std::function<bool()>& is_over) {
    Random random(static_cast<std::uint64_t>(thread) + 2);
    const base::HostBuffer scratch(disk.scratch_bytes(request_bytes));
    do {
      ReadCost cost;
      const auto there = disk.read(request_bytes, 1, random, scratch.bytes(), end, cost);
      const std::lock_guard lock(mutex);
      bytes += cost.bytes_read;
      last = std::max(last, there);
    } while (!is_over());
  });
  return static_cast<double>(bytes) / seconds_between(start, last);
}

/// \pre the bandwidth is measured.
void measure_latency(const Disk& disk, double seconds, StageRates& rates) {
  const auto end = in_seconds(seconds);
  Random random(1);
  const base::HostBuffer scratch(disk.scratch_bytes(kPage));
  double sum = 0;
  std::int64_t requests = 0;
  do {
    ReadCost cost;
    const auto begin = Disk::Clock::now();
    sum += seconds_between(begin, disk.read(kPage, kPage, random, scratch.bytes(), end, cost));
    ++requests;
  } while (Disk::Clock::now() < end);
  const double transfer = static_cast<double>(kPage) /
                          std::max(rates.disk_bytes_per_second, rates.large_bytes_per_second);
  rates.request_seconds = std::max(sum / static_cast<double>(requests) - transfer, 0.0);
}

/// Row groups, read over and over from the page cache.
class Placement {
 public:
  explicit Placement(const Loader& loader)
      : groups_(loader.row_groups()),
        sample_bytes_(loader.dataset().info().sample_bytes()),
        layout_(read::ring_layout(loader.dataset().info(), 1)),
        source_(open_source(loader, layout_)) {
    Random random(0);
    const std::int64_t group_bytes = groups_.group_samples() * sample_bytes_;
    const std::int64_t wanted =
        std::clamp<std::int64_t>(kPixelBytes / group_bytes, 1, groups_.num_groups());
    for (std::int64_t i = 0; i < wanted; ++i) {
      chosen_.push_back(draw_below(random, groups_.num_groups()));
    }
  }

  /// One thread's part: places groups until it is over. \returns what it cost.
  ReadCost run(std::int64_t thread, const std::function<bool()>& is_over,
               std::atomic<std::int64_t>& pixel_bytes) const {
    const std::size_t row_bytes = layout_.leading.row_bytes;
    const base::HostBuffer batch(static_cast<std::size_t>(groups_.max_length()) * row_bytes);
    std::vector<std::uint32_t> offsets;
    std::vector<RowTarget> rows;
    ReadCost cost;
    auto next = static_cast<std::size_t>(thread);
    do {
      const std::int64_t group = chosen_[next++ % chosen_.size()];
      groups_.offsets(group, offsets);
      rows.clear();
      // Rows go to other places than they come from, as in a shuffled batch.
      for (std::size_t i = 0; i < offsets.size(); ++i) {
        const std::size_t place = offsets.size() - 1 - i;
        rows.push_back({offsets[i], batch.data() + place * row_bytes});
      }
      const RowRange extent = groups_.extent(group);
      cost += source_->place({extent.begin, extent.end - extent.begin}, rows, {});
      if (layout_.sparse) give_back(rows);
      pixel_bytes += std::ssize(offsets) * sample_bytes_;
    } while (!is_over());
    return cost;
  }

  /// Brings the groups into the page cache, or as many of them as there is time for; others are
  /// left out.
  void warm_up(double seconds) {
    std::atomic<std::int64_t> pixels = 0;
    std::size_t placed = 0;
    const auto end = in_seconds(seconds);
    const auto is_over = [&] { return ++placed == chosen_.size() || Disk::Clock::now() >= end; };
    static_cast<void>(run(0, is_over, pixels));
    chosen_.resize(placed);
  }

 private:
  void give_back(std::span<const RowTarget> rows) const {
    for (const RowTarget& row : rows) {
      layout_.sparse->blocks->release(*reinterpret_cast<base::SparseRow*>(row.target)->block, 1);
    }
  }

  static std::unique_ptr<ChunkSource> open_source(const Loader& loader, read::RingLayout& layout) {
    LoaderOptions options = loader.options();
    options.memory.resident = Resident::none;
    options.fields.clear();
    options.io.direct_io = false;
    options.io.disk_limit.reset();
    // As the loader has chosen.
    options.io.source = loader.source();
    const read::InFlight in_flight{.rows = loader.row_groups().max_length(), .groups = 1};
    return std::move(
        read::open_arrays(loader.dataset(), loader.row_groups(), options, in_flight, layout)
            .arrays.front()
            .source);
  }

  const RowGroups& groups_;
  std::int64_t sample_bytes_;
  read::RingLayout layout_;
  std::unique_ptr<ChunkSource> source_;
  std::vector<std::int64_t> chosen_;
};

void measure_processors(const Loader& loader, double seconds, StageRates& rates) {
  Placement placement(loader);
  placement.warm_up(seconds);
  const auto rate = [](std::int64_t bytes, double busy) {
    return busy > 0 ? static_cast<double>(bytes) / busy : 0.0;
  };
  std::atomic<std::int64_t> pixels = 0;
  ReadCost one;
  on_threads(1, seconds, [&](std::int64_t thread, const std::function<bool()>& is_over) {
    one = placement.run(thread, is_over, pixels);
  });
  rates.decode_bytes_per_second = rate(pixels, one.decode_seconds);
  rates.copy_bytes_per_second = rate(pixels, one.copy_seconds);

  pixels = 0;
  const double took = on_threads(rates.num_threads, seconds,
                                 [&](std::int64_t thread, const std::function<bool()>& is_over) {
                                   static_cast<void>(placement.run(thread, is_over, pixels));
                                 });
  rates.processor_bytes_per_second = rate(pixels, took);
}

double stored_bytes_per_sample(const Loader& loader, const Files& files) {
  double stored = 0;
  for (const auto& file : files) stored += static_cast<double>(file->leading->stored_bytes);
  return stored / static_cast<double>(std::max<std::int64_t>(loader.dataset().size(), 1));
}

std::int64_t least_file_bytes(const Files& files) {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const auto& file : files) least = std::min(least, file->bytes->size());
  return least;
}

/// Why the bytes of the files are not those of the images; or empty.
std::string why_no_disk(const Files& files) {
  for (const auto& file : files) {
    if (!file->leading->needs_libhdf5.empty()) return file->leading->needs_libhdf5;
  }
  return {};
}

/// What a disk does that answers requests of many threads as `alone` says. With n requests of s
/// bytes under way it delivers R = min(B, n s / (L + s / B)). Of requests of two sizes, the larger
/// one takes longer only by what it transfers more, which gives B; then n follows from R of the
/// smaller one (Little's law). Of one size, all threads are taken to be answered at once.
DiskLimit disk_of(const StageRates& alone) {
  const auto request = static_cast<double>(alone.request_bytes);
  const auto threads = static_cast<double>(alone.num_threads);
  DiskLimit disk{.request_seconds = std::min(alone.request_seconds, DiskLimit::kMaxRequestSeconds)};
  double seconds = threads * request / alone.disk_bytes_per_second - alone.request_seconds;
  double bytes = request;
  if (alone.large_bytes_per_second > 0) {
    const auto large = static_cast<double>(alone.large_request_bytes);
    seconds = large / alone.large_bytes_per_second - request / alone.disk_bytes_per_second;
    bytes = large - request;
  }
  const double least = std::max(alone.disk_bytes_per_second, alone.large_bytes_per_second);
  disk.bytes_per_second =
      std::clamp(std::max(seconds > 0 ? bytes / seconds : DiskLimit::kMaxBytesPerSecond, least),
                 1.0, DiskLimit::kMaxBytesPerSecond);
  // A disk that was asked by more threads than it answers at once, though it had bandwidth left.
  // One that answers all of them may answer more.
  constexpr double kUsedUp = 0.8;
  const double under_way =
      alone.disk_bytes_per_second * (alone.request_seconds / request + 1 / disk.bytes_per_second);
  if (alone.large_bytes_per_second > 0 && under_way < threads - 0.5 &&
      alone.disk_bytes_per_second < kUsedUp * disk.bytes_per_second) {
    disk.queue_depth = std::max(1L, std::lround(under_way));
  }
  return disk;
}

}  // namespace

StageRates measure_stages(const Loader& loader, double seconds) {
  if (!(seconds > 0 && seconds <= kMaxSeconds)) {
    throw Error(ErrorCode::invalid_argument,
                "stages are measured for more than 0 and at most 60 seconds each, not " +
                    std::to_string(seconds));
  }
  const Files files = h5::files_of(internal::Access::impl(loader.dataset()));
  StageRates rates{.no_disk = why_no_disk(files),
                   .stored_bytes_per_sample = stored_bytes_per_sample(loader, files),
                   .num_threads = loader.num_threads()};
  rates.busy_threads =
      loader.source() == SourceKind::hdf5 ? 1 : std::min(rates.num_threads, base::usable_cpus());
  const double group_bytes =
      rates.stored_bytes_per_sample * static_cast<double>(loader.row_groups().group_samples());
  rates.request_bytes =
      std::clamp(static_cast<std::int64_t>(group_bytes), kLeastRequest, kLargestRequest);
  if (rates.no_disk.empty()) {
    rates.cached_share = cached_share(files);
    Disk disk(files, loader.options().io.disk_limit);
    rates.disk_is_direct = disk.direct();
    rates.disk_bytes_per_second =
        measure_bandwidth(disk, seconds, rates.num_threads, rates.request_bytes);
    const std::int64_t large = std::min(kLargestRequest, least_file_bytes(files));
    if (large >= kMuchLarger * rates.request_bytes) {
      rates.large_request_bytes = large;
      disk.become_idle();
      rates.large_bytes_per_second = measure_bandwidth(disk, seconds, rates.num_threads, large);
    }
    disk.become_idle();
    measure_latency(disk, seconds, rates);
  }
  measure_processors(loader, seconds, rates);
  return rates;
}

BottleneckReport find_bottleneck(const LoaderStats& stats, const StageRates& alone) {
  if (stats.images == 0 || !(stats.seconds > 0)) return stats.bottleneck();
  MachineRates rates = advice::observe(stats).rates;
  // A run that hardly waited for the disk has shown that it needs none.
  if (rates.disk != DiskLimit{} && alone.disk_bytes_per_second > 0) {
    rates.disk = disk_of(alone);
    // Requests that go on where the last one ended have no latency.
    if (stats.facts.order == OrderMode::sequential) rates.disk.request_seconds = 0;
  }
  if (alone.decode_bytes_per_second > 0) {
    rates.decode_bytes_per_second = alone.decode_bytes_per_second;
  }
  // More threads than have been tried may bring more, as far as memory goes.
  if (alone.decode_bytes_per_second <= 0 && alone.num_threads >= rates.num_cpus) {
    rates.memory_bytes_per_second = alone.processor_bytes_per_second;
  }
  if (alone.copy_bytes_per_second > 0) rates.copy_bytes_per_second = alone.copy_bytes_per_second;
  return advice::find_bottleneck(stats, rates);
}

}  // namespace chunkio
