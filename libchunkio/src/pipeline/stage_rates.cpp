#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <chunkio/error.hpp>
#include <chunkio/stage_rates.hpp>

#include "base/host_memory.hpp"
#include "h5/dataset_impl.hpp"
#include "h5/shard_set.hpp"
#include "io/disk_limiter.hpp"
#include "io/page_cache.hpp"
#include "io/range_reader.hpp"
#include "pipeline/bottleneck.hpp"
#include "pipeline/open_arrays.hpp"

namespace chunkio {
namespace {

constexpr double kMaxSeconds = 60;
/// Pixels that are decoded and copied over and over: more than caches of processors hold.
constexpr std::int64_t kPixelBytes = std::int64_t{64} << 20;
constexpr std::int64_t kLeastRequest = std::int64_t{64} << 10;
constexpr std::int64_t kLargestRequest = std::int64_t{16} << 20;
/// Of the file, to be asked whether the page cache has them.
constexpr std::int64_t kSampledPages = 1024;

/// Random numbers below `bound`, the same in every run.
class Draws {
 public:
  explicit Draws(std::uint64_t stream) : random_(stream) {}
  std::int64_t below(std::int64_t bound) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(bound));
  }

 private:
  std::mt19937_64 random_;
};

/// Calls `work(thread, is_over)` on `num_threads` threads, the caller among them, and returns when
/// all have returned; the wall time. \throws what one of them threw first.
double on_threads(std::int64_t num_threads, double seconds,
                  const std::function<void(std::int64_t, const std::function<bool()>&)>& work) {
  using Clock = std::chrono::steady_clock;
  std::atomic<bool> failed = false;
  std::mutex mutex;
  std::exception_ptr error;
  const Clock::time_point start = Clock::now();
  const auto since = [start] {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  const auto is_over = [&] { return failed || since() >= seconds; };
  const auto run = [&](std::int64_t thread) {
    try {
      work(thread, is_over);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
      failed = true;
    }
  };
  {
    std::vector<std::jthread> helpers;
    try {
      for (std::int64_t i = 1; i < num_threads; ++i) helpers.emplace_back([&run, i] { run(i); });
    } catch (const std::system_error&) {
      // A process that may start no more threads does with those it has.
    }
    run(0);
  }
  if (error) std::rethrow_exception(error);
  return since();
}

using Files = std::vector<std::shared_ptr<const Dataset::Impl>>;

double cached_share(const Files& files) {
  Draws draws(1);
  std::int64_t cached = 0;
  for (std::int64_t i = 0; i < kSampledPages; ++i) {
    const Dataset::Impl& file = *files[static_cast<std::size_t>(draws.below(std::ssize(files)))];
    if (io::has_page(file.descriptor.get(), draws.below(file.file_bytes))) ++cached;
  }
  return static_cast<double>(cached) / static_cast<double>(kSampledPages);
}

/// \param limit  a slower disk that is meant; or none.
void measure_disk(const Files& files, const std::optional<DiskLimit>& limit, double seconds,
                  StageRates& rates) {
  std::vector<io::RangeReader> readers;
  for (const auto& file : files) readers.emplace_back(file, true);
  rates.disk_is_direct = std::all_of(readers.begin(), readers.end(),
                                     [](const io::RangeReader& reader) { return reader.direct(); });
  const auto slower = limit ? std::make_shared<io::DiskLimiter>(*limit) : nullptr;
  std::atomic<std::int64_t> bytes_read = 0;
  const double took = on_threads(
      rates.num_threads, seconds, [&](std::int64_t thread, const std::function<bool()>& is_over) {
        Draws draws(static_cast<std::uint64_t>(thread) + 2);
        const base::HostBuffer scratch(readers.front().scratch_bytes(rates.request_bytes));
        do {
          const auto number = static_cast<std::size_t>(draws.below(std::ssize(readers)));
          const std::int64_t file_bytes = files[number]->file_bytes;
          const std::int64_t size = std::min(rates.request_bytes, file_bytes);
          const std::int64_t offset = draws.below(file_bytes - size + 1);
          const auto arrives =
              slower ? slower->submit(size, offset) : io::DiskLimiter::Clock::now();
          PlaceCost cost;
          static_cast<void>(readers[number].read(offset, size, scratch.bytes(), cost));
          if (slower) slower->wait_until(arrives, {});
          bytes_read += cost.bytes_read;
        } while (!is_over());
      });
  rates.disk_bytes_per_second = static_cast<double>(bytes_read) / took;
}

/// Row groups, read over and over from the page cache.
class Placement {
 public:
  explicit Placement(const Loader& loader)
      : groups_(loader.row_groups()),
        sample_bytes_(loader.dataset().info().sample_bytes()),
        source_(open_source(loader)) {
    Draws draws(0);
    const std::int64_t group_bytes = groups_.group_samples() * sample_bytes_;
    const std::int64_t wanted =
        std::clamp<std::int64_t>(kPixelBytes / group_bytes, 1, groups_.num_groups());
    for (std::int64_t i = 0; i < wanted; ++i) {
      chosen_.push_back(draws.below(groups_.num_groups()));
    }
  }

  /// One thread's part: places groups until it is over. \returns what it cost.
  PlaceCost run(std::int64_t thread, const std::function<bool()>& is_over,
                std::atomic<std::int64_t>& pixel_bytes) const {
    const base::HostBuffer batch(static_cast<std::size_t>(groups_.max_length() * sample_bytes_));
    std::vector<std::uint32_t> offsets;
    std::vector<RowTarget> rows;
    PlaceCost cost;
    auto next = static_cast<std::size_t>(thread);
    do {
      const std::int64_t group = chosen_[next++ % chosen_.size()];
      groups_.offsets(group, offsets);
      rows.clear();
      // Rows go to other places than they come from, as in a shuffled batch.
      for (std::size_t i = 0; i < offsets.size(); ++i) {
        const std::size_t place = offsets.size() - 1 - i;
        rows.push_back(
            {offsets[i], batch.data() + place * static_cast<std::size_t>(sample_bytes_)});
      }
      const RowRange extent = groups_.extent(group);
      cost += source_->place({extent.begin, extent.end - extent.begin}, rows, {});
      pixel_bytes += std::ssize(offsets) * sample_bytes_;
    } while (!is_over());
    return cost;
  }

  /// Brings the groups into the page cache.
  void warm_up() const {
    std::atomic<std::int64_t> pixels = 0;
    std::int64_t left = std::ssize(chosen_);
    static_cast<void>(run(
        0, [&left] { return --left <= 0; }, pixels));
  }

 private:
  static std::unique_ptr<ChunkSource> open_source(const Loader& loader) {
    LoaderOptions options = loader.options();
    options.resident = Resident::none;
    options.fields.clear();
    options.direct_io = false;
    options.disk_limit.reset();
    // As the loader has chosen.
    options.source = loader.source();
    const pipeline::RingLayout layout{
        .rows = 1,
        .sample_shape = loader.dataset().info().sample_shape(),
        .sample_bytes = static_cast<std::size_t>(loader.dataset().info().sample_bytes())};
    return std::move(pipeline::open_arrays(loader.dataset(), loader.row_groups(), options, layout)
                         .arrays.front()
                         .source);
  }

  const RowGroups& groups_;
  std::int64_t sample_bytes_;
  std::unique_ptr<ChunkSource> source_;
  std::vector<std::int64_t> chosen_;
};

void measure_processors(const Loader& loader, double seconds, StageRates& rates) {
  const Placement placement(loader);
  placement.warm_up();
  const auto rate = [](std::int64_t bytes, double busy) {
    return busy > 0 ? static_cast<double>(bytes) / busy : 0.0;
  };
  std::atomic<std::int64_t> pixels = 0;
  PlaceCost one;
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

/// Stored bytes of a row group, on average.
std::int64_t request_bytes(const Loader& loader, const Files& files) {
  std::int64_t stored = 0;
  for (const auto& file : files) stored += file->images->stored_bytes;
  const auto share = static_cast<double>(loader.row_groups().group_samples()) /
                     static_cast<double>(std::max<std::int64_t>(loader.dataset().size(), 1));
  return std::clamp(static_cast<std::int64_t>(share * static_cast<double>(stored)), kLeastRequest,
                    kLargestRequest);
}

}  // namespace

StageRates measure_stages(const Loader& loader, double seconds) {
  if (!(seconds > 0 && seconds <= kMaxSeconds)) {
    throw Error(ErrorCode::invalid_argument,
                "stages are measured for more than 0 and at most 60 seconds each, not " +
                    std::to_string(seconds));
  }
  const Files files = h5::files_of(loader.dataset().impl());
  StageRates rates{.cached_share = cached_share(files),
                   .request_bytes = request_bytes(loader, files),
                   .num_threads = loader.num_threads()};
  measure_disk(files, loader.options().disk_limit, seconds, rates);
  measure_processors(loader, seconds, rates);
  return rates;
}

Diagnosis diagnose(const LoaderStats& stats, const StageRates& alone) {
  if (stats.images == 0 || !(stats.seconds > 0)) return stats.diagnosis();
  MachineRates rates = pipeline::observe(stats).rates;
  // A run that hardly waited for the disk has shown that it needs none.
  if (rates.disk.bytes_per_second > 0 && alone.disk_bytes_per_second > 0) {
    rates.disk.bytes_per_second = alone.disk_bytes_per_second;
  }
  if (alone.decode_bytes_per_second > 0) {
    rates.decode_bytes_per_second = alone.decode_bytes_per_second;
  }
  // More threads than have been tried may bring more, as far as memory goes.
  if (alone.decode_bytes_per_second <= 0 && alone.num_threads >= rates.num_cpus) {
    rates.memory_bytes_per_second = alone.processor_bytes_per_second;
  }
  if (alone.copy_bytes_per_second > 0) rates.copy_bytes_per_second = alone.copy_bytes_per_second;
  return pipeline::diagnose(stats, rates);
}

}  // namespace chunkio
