#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include <chunkio/epoch_order.hpp>
#include <chunkio/error.hpp>
#include <chunkio/tuning.hpp>

#include "advice/suggestions.hpp"
#include "base/checked_math.hpp"
#include "io/page_cache.hpp"
#include "plan/cache_simulator.hpp"
#include "plan/group_samples.hpp"
#include "plan/ring_slots.hpp"

namespace chunkio {
namespace {

constexpr std::int64_t kMebibyte = std::int64_t{1} << 20;
/// In the order in which they are preferred: by distance from the default, the smaller first.
constexpr std::array<std::int64_t, 9> kChunkBytes = {
    4 * kMebibyte, 2 * kMebibyte,  8 * kMebibyte, kMebibyte,     16 * kMebibyte,
    kMebibyte / 2, 32 * kMebibyte, kMebibyte / 4, 64 * kMebibyte};
static_assert(kChunkBytes.front() == kDefaultChunkBytes);
/// A rate this close to the best is as good.
constexpr double kAsGood = 0.97;
/// Fewer chunks in a window mix too little, even in a file that was shuffled when it was packed.
constexpr std::int64_t kMixedGroups = 8;
constexpr std::int64_t kMaxThreads = 8;  // as LoaderOptions::num_threads
constexpr std::int64_t kMinPrefetch = 4;
constexpr std::int64_t kMaxPrefetch = 64;
constexpr std::int64_t kMaxHeld = 4;  // as LoaderOptions::max_held
/// Beside pixels: the plan of a row, what a thread works in, everything small.
constexpr std::int64_t kPlanRowBytes = 64;
constexpr std::int64_t kThreadBytes = 8 * kMebibyte;
constexpr std::int64_t kOtherBytes = 16 * kMebibyte;
constexpr std::int64_t kSimulatedReads = 100'000;
constexpr std::int64_t kMaxSimulatedChunks = std::int64_t{1} << 24;
/// Numbers beyond this do not occur, and products of two below stay in range of what is checked.
constexpr std::int64_t kSane = std::int64_t{1} << 50;

void require(bool met, const char* what, std::int64_t value) {
  if (met) return;
  throw Error(ErrorCode::invalid_argument,
              std::string("cannot tune: ") + what + ", not " + std::to_string(value));
}

void require_valid(const TuningTask& task) {
  const auto count = [](std::int64_t value, const char* what) {
    require(value >= 1 && value <= kSane, what, value);
  };
  count(task.num_samples, "num_samples must be 1 to 2^50");
  count(task.sample_bytes, "sample_bytes must be 1 to 2^50");
  count(task.memory_bytes, "memory_bytes must be 1 to 2^50");
  count(task.batch_size, "batch_size must be 1 to 2^50");
  require(task.row_bytes >= 0 && task.row_bytes <= kSane, "row_bytes must be 0 to 2^50",
          task.row_bytes);
  require(task.cache_bytes >= 0, "cache_bytes must be at least 0", task.cache_bytes);
  if (task.stored) {
    count(task.stored->samples, "samples of a row group must be 1 to 2^50");
    count(task.stored->num_requests, "requests of a row group must be 1 to 2^50");
    count(task.stored->request_bytes, "bytes of a request must be 1 to 2^50");
    require(task.stored->decoded_bytes >= 0 && task.stored->decoded_bytes <= kSane,
            "decoded bytes of a row group must be 0 to 2^50", task.stored->decoded_bytes);
  }
}

/// a * b, or more than any memory.
std::int64_t product(std::int64_t a, std::int64_t b) {
  return std::min(base::checked_multiply(a, b).value_or(kSane), kSane);
}

/// What a Loader allocates for windows of `groups` row groups: its ring, and round numbers for all
/// that is not pixels.
std::int64_t loader_memory(const TuningTask& task, const Tuning& found, std::int64_t groups,
                           std::int64_t decoded_bytes) {
  const std::int64_t window = std::min(product(groups, found.chunk_samples), task.num_samples);
  const std::int64_t batch = std::min(task.batch_size, task.num_samples);
  const std::int64_t slots =
      plan::ring_slots({.window = window,
                        .batch = batch,
                        .num_steps = base::ceil_divide(task.num_samples, batch),
                        .prefetch_depth = found.prefetch_depth,
                        .max_held = kMaxHeld});
  const std::int64_t rows = product(slots, batch);
  return std::min(kSane, product(rows, task.sample_bytes + task.row_bytes + kPlanRowBytes) +
                             product(task.num_samples, task.row_bytes) +
                             product(found.num_threads, kThreadBytes + 2 * decoded_bytes) +
                             kOtherBytes);
}

/// Batches that are consumed while the disk takes ten times as long as usual for a row group, in at
/// most a quarter of the memory. A disk that is too slow on average is not helped by more.
std::int64_t choose_prefetch(const TuningTask& task, const DiskLimit& disk,
                             std::int64_t group_bytes, const Throughput& expected) {
  if (task.step_seconds <= 0 || expected.bottleneck != Bottleneck::consumer) return kMinPrefetch;
  const double transfer =
      disk.bytes_per_second > 0 ? static_cast<double>(group_bytes) / disk.bytes_per_second : 0;
  const double batches = std::ceil(10 * (disk.request_seconds + transfer) / task.step_seconds);
  const std::int64_t fitting = task.memory_bytes / 4 / product(task.batch_size, task.sample_bytes);
  return std::clamp(static_cast<std::int64_t>(std::min<double>(batches, kMaxPrefetch)),
                    kMinPrefetch, std::max(kMinPrefetch, fitting));
}

/// Settings for row groups of one kind.
struct Candidate {
  Tuning tuning;
  std::int64_t window_groups = 0;
  std::int64_t needed_bytes = 0;  // of memory
  bool mixes = false;
};

Candidate settings_for(const TuningTask& task, const MachineRates& rates,
                       const StoredGroups& groups) {
  Candidate candidate;
  Tuning& found = candidate.tuning;
  found.chunk_samples = groups.samples;
  found.chunk_bytes = product(groups.samples, task.sample_bytes);
  const std::int64_t num_groups = base::ceil_divide(task.num_samples, groups.samples);
  const std::int64_t stored_bytes =
      product(num_groups, product(groups.num_requests, groups.request_bytes));
  const std::int64_t image_bytes = product(task.num_samples, task.sample_bytes);
  const bool has_disk = rates.disk != DiskLimit{};
  const bool cached = stored_bytes <= task.cache_bytes;

  found.num_threads = std::min(rates.num_cpus, kMaxThreads);

  ReadingPlan plan{.sample_bytes = task.sample_bytes,
                   .samples_per_group = std::min(groups.samples, task.num_samples),
                   .request_bytes = groups.request_bytes,
                   .requests_per_group = groups.num_requests,
                   .decoded_bytes = groups.decoded_bytes,
                   .num_threads = found.num_threads,
                   .batch_size = task.batch_size,
                   .step_seconds = task.step_seconds};
  // Files that the page cache cannot hold are read round it.
  if (!cached) plan.read_ahead_bytes = ReadingPlan::kDirectReadAheadBytes;
  found.first_epoch = predict_throughput(rates, plan);
  while (has_disk && !cached && found.num_threads < advice::kMaxWaitingThreads) {
    plan.num_threads = std::min(2 * found.num_threads, advice::kMaxWaitingThreads);
    const Throughput with_more = predict_throughput(rates, plan);
    if (kAsGood * with_more.images_per_second < found.first_epoch.images_per_second) break;
    found.num_threads = plan.num_threads;
    found.first_epoch = with_more;
  }
  plan.num_threads = found.num_threads;
  found.prefetch_depth = choose_prefetch(
      task, rates.disk, product(groups.num_requests, groups.request_bytes), found.first_epoch);

  // The largest window that fits, up to the default.
  const std::int64_t most =
      std::clamp<std::int64_t>(kDefaultWindowBytes / found.chunk_bytes, 1, num_groups);
  candidate.window_groups = most;
  const auto needed = [&] {
    return loader_memory(task, found, candidate.window_groups, groups.decoded_bytes);
  };
  while (candidate.window_groups > 1 && needed() > task.memory_bytes) {
    candidate.window_groups = candidate.window_groups / 2;
  }
  candidate.needed_bytes = needed();
  candidate.mixes = candidate.window_groups >= std::min(kMixedGroups, num_groups);
  // Of a window in bytes the loader takes whole row groups.
  found.window_bytes =
      candidate.window_groups == most && most * found.chunk_bytes > kDefaultWindowBytes / 2
          ? std::max(kDefaultWindowBytes, found.chunk_bytes)
          : candidate.window_groups * found.chunk_bytes;

  MachineRates later = rates;
  const std::int64_t resident = candidate.needed_bytes + image_bytes;
  if (task.can_be_resident && resident <= task.memory_bytes) {
    found.resident = Resident::host;
    plan.decoded_bytes = 0;
  }
  if (found.resident == Resident::host || cached) {
    later.disk = {};
    plan.read_ahead_bytes = ReadingPlan{}.read_ahead_bytes;
  }
  found.later_epochs = predict_throughput(later, plan);
  const std::int64_t budget = found.resident == Resident::host ? resident : candidate.needed_bytes;
  found.memory_budget = std::min(base::ceil_divide(budget, kOtherBytes) * kOtherBytes,
                                 std::max(task.memory_bytes, budget));
  found.cache = recommend_cache(product(num_groups, groups.num_requests),
                                found.chunk_bytes / groups.num_requests, found.window_bytes);
  if (rates.disk.bytes_per_second > 0) {
    const double bytes_per_image =
        static_cast<double>(product(groups.num_requests, groups.request_bytes)) /
        static_cast<double>(plan.samples_per_group);
    found.disk_share =
        found.first_epoch.images_per_second * bytes_per_image / rates.disk.bytes_per_second;
  }
  return candidate;
}

[[noreturn]] void refuse_memory(const TuningTask& task, std::int64_t needed) {
  throw Error(ErrorCode::out_of_resources,
              std::to_string(task.memory_bytes) + " bytes of memory are too few: batches of " +
                  std::to_string(task.batch_size) + " samples of " +
                  std::to_string(task.sample_bytes) + " bytes need at least " +
                  std::to_string(needed) + "; raise memory_bytes, or lower batch_size",
              "memory_bytes", "batch_size");
}

}  // namespace

std::int64_t available_memory() { return io::cacheable_bytes(); }

StoredGroups stored_groups(const DatasetInfo& dataset) {
  StoredGroups groups;
  const std::int64_t sample_bytes = dataset.sample_bytes();
  const StoredLayout& stored = dataset.stored;
  const bool filtered = !stored.filters.empty();
  groups.samples = plan::group_samples(dataset, kDefaultWindowBytes);
  if (dataset.encoded) {
    groups.request_bytes = std::max<std::int64_t>(
        1, product(groups.samples, dataset.encoded->num_bytes) / dataset.num_samples);
    groups.decoded_bytes = product(groups.samples, sample_bytes);
    return groups;
  }
  // Groups of whole chunks, small ones being read together; others are parts of chunks or of a run.
  if (stored.chunked && groups.samples > stored.chunk_shape[0]) {
    groups.request_bytes = std::max<std::int64_t>(
        1, product(groups.samples, dataset.stored_bytes) / dataset.num_samples);
    if (filtered) groups.decoded_bytes = product(groups.samples, sample_bytes);
    return groups;
  }
  if (!stored.chunked || groups.samples != std::min(stored.chunk_shape[0], dataset.num_samples)) {
    groups.request_bytes = groups.samples * sample_bytes;
    return groups;
  }
  const std::int64_t num_groups = base::ceil_divide(dataset.num_samples, stored.chunk_shape[0]);
  groups.num_requests = std::max<std::int64_t>(1, dataset.num_chunks / num_groups);
  groups.request_bytes = std::max<std::int64_t>(
      1, dataset.stored_bytes / std::max<std::int64_t>(1, dataset.num_chunks));
  if (filtered) {
    groups.decoded_bytes = product(product(stored.chunk_shape.num_elements(),
                                           static_cast<std::int64_t>(size_of(stored.dtype))),
                                   groups.num_requests);
  }
  return groups;
}

Tuning tune(const TuningTask& task, const MachineRates& rates) {
  require_valid(task);
  if (task.stored) {
    const Candidate candidate = settings_for(task, rates, *task.stored);
    if (candidate.needed_bytes > task.memory_bytes) refuse_memory(task, candidate.needed_bytes);
    return candidate.tuning;
  }

  std::array<Candidate, kChunkBytes.size()> candidates;
  std::int64_t least_bytes = kSane;
  bool any_mixes = false;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const std::int64_t samples =
        choose_chunk_samples(task.sample_bytes, task.num_samples, kChunkBytes[i]);
    candidates[i] = settings_for(
        task, rates, {.samples = samples, .request_bytes = samples * task.sample_bytes});
    least_bytes = std::min(least_bytes, candidates[i].needed_bytes);
    any_mixes =
        any_mixes || (candidates[i].mixes && candidates[i].needed_bytes <= task.memory_bytes);
  }
  const auto possible = [&](const Candidate& candidate) {
    return candidate.needed_bytes <= task.memory_bytes && (candidate.mixes || !any_mixes);
  };
  double best = 0;
  for (const Candidate& candidate : candidates) {
    if (possible(candidate)) best = std::max(best, candidate.tuning.first_epoch.images_per_second);
  }
  for (const Candidate& candidate : candidates) {
    if (possible(candidate) && candidate.tuning.first_epoch.images_per_second >= kAsGood * best) {
      return candidate.tuning;
    }
  }
  refuse_memory(task, least_bytes);
}

Hdf5Reads predict_hdf5_reads(const StoredLayout& stored, std::int64_t stored_bytes,
                             const ChunkCacheSettings& settings, OrderMode order,
                             std::int64_t window_bytes) {
  if (!stored.chunked || stored.chunk_shape.rank() != stored.shape.rank() || window_bytes < 1) {
    throw Error(ErrorCode::invalid_argument,
                "HDF5's chunk cache is of use for chunked data, read in windows of 1 byte or more");
  }
  plan::StoredGeometry geometry{.shape = stored.shape,
                                .chunk_shape = stored.chunk_shape,
                                .element_bytes = static_cast<std::int64_t>(size_of(stored.dtype)),
                                .filtered = !stored.filters.empty()};
  std::int64_t num_chunks = 1;
  for (std::size_t axis = 0; axis < stored.shape.rank(); ++axis) {
    num_chunks = product(
        num_chunks,
        base::ceil_divide(stored.shape[axis], std::max<std::int64_t>(1, stored.chunk_shape[axis])));
  }
  if (geometry.filtered && num_chunks <= kMaxSimulatedChunks) {
    geometry.stored_bytes.assign(static_cast<std::size_t>(num_chunks),
                                 std::max<std::int64_t>(1, stored_bytes / num_chunks));
  }
  plan::CacheSimulator cache(std::move(geometry), settings);

  const std::int64_t group_samples = std::min(stored.chunk_shape[0], stored.shape[0]);
  const std::int64_t sample_bytes =
      std::max<std::int64_t>(1, stored.shape.without_first_axis().num_elements() *
                                    static_cast<std::int64_t>(size_of(stored.dtype)));
  const EpochOrder epoch(RowGroups(group_samples, stored.shape[0]),
                         {.mode = order,
                          .batch_size = std::min<std::int64_t>(1024, stored.shape[0]),
                          .window_groups = std::max<std::int64_t>(
                              1, window_bytes / product(group_samples, sample_bytes))},
                         0);
  for (std::int64_t step = 0; step < epoch.num_steps() && cache.counts().reads < kSimulatedReads;
       ++step) {
    cache.read_each(epoch.batch(step));
  }
  return {cache.counts().hit_rate(), cache.counts().read_amplification()};
}

}  // namespace chunkio
