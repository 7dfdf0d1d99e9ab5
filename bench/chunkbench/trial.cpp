#include "chunkbench/trial.hpp"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <thread>
#include <utility>

#include <chunkio/chunk_layout.hpp>
#include <chunkio/error.hpp>
#include <chunkio/loader.hpp>
#include <chunkio/option_names.hpp>

#include "base/digest.hpp"
#include "base/host_memory.hpp"
#include "cli/byte_size.hpp"
#include "cli/stop_signal.hpp"
#include "h5/handle.hpp"
#include "h5/library.hpp"
#include "harness/cold_file.hpp"
#include "harness/h5dread_baseline.hpp"
#include "harness/machine.hpp"
#include "harness/metered_driver.hpp"
#include "io/disk_limiter.hpp"
#include "plan/cache_simulator.hpp"
#include "plan/epoch_rows.hpp"
#include "plan/window_plan.hpp"

namespace bench {
namespace {

using chunkio::Dataset;
using chunkio::EpochOrder;
using chunkio::Error;
using chunkio::ErrorCode;
using chunkio::Loader;
using chunkio::OrderMode;
using chunkio::RowGroups;
using chunkio::RowSelection;
using Clock = std::chrono::steady_clock;

/// The one epoch, delivered again and again. Nothing is prefetched behind it.
constexpr std::int64_t kEpoch = 0;
/// Page cache that a cold epoch may find: some of the file's metadata.
constexpr std::int64_t kMetadataBytes = 16 << 10;

/// `count` different numbers below `total`, as a global shuffle begins.
std::vector<std::int64_t> draw(std::int64_t count, std::int64_t total, std::uint64_t seed) {
  return EpochOrder(RowGroups(1, total),
                    {.mode = OrderMode::random, .seed = seed, .batch_size = count}, kEpoch)
      .batch(0);
}

chunkio::LoaderOptions loader_options(const Cell& cell, const ChunkFile& file,
                                      const TrialSettings& settings) {
  const OrderMode order = chunkio::from_string<OrderMode>(cell.order);
  return {.batch_size = settings.batch_size,
          .seed = settings.seed,
          .rows = rows_of_trial(order, file.info.num_samples, cell.chunk_samples, settings),
          // Version 1: each chunk is read by itself, since the figure is to be that of the chunk.
          .order = {.mode = order, .window_bytes = cell.cache_bytes, .version = 1},
          // What the windows need: which memory they are worth is what the sweep asks.
          .memory = {.budget = std::int64_t{1} << 50},
          .io = {.num_threads = cell.threads,
                 .source = chunkio::from_string<chunkio::SourceKind>(cell.source),
                 .num_epochs = kEpoch + 1,
                 .disk_limit = settings.limit}};
}

/// Rows as an epoch delivers them, for who reads them one by one: mixed within windows of as many
/// chunks as the cache holds.
std::vector<std::int64_t> delivery_order(const Cell& cell, const ChunkFile& file,
                                         const TrialSettings& settings) {
  const OrderMode mode = chunkio::from_string<OrderMode>(cell.order);
  const std::optional<RowSelection> rows =
      rows_of_trial(mode, file.info.num_samples, cell.chunk_samples, settings);
  RowGroups groups = rows ? RowGroups(cell.chunk_samples, file.info.num_samples, *rows)
                          : RowGroups(cell.chunk_samples, file.info.num_samples);
  const std::int64_t chunk_bytes = cell.chunk_samples * file.info.sample_bytes();
  const EpochOrder order(
      std::move(groups),
      {.mode = mode,
       .seed = settings.seed,
       .batch_size = settings.batch_size,
       .window_groups = std::max<std::int64_t>(cell.cache_bytes / chunk_bytes, 1)},
      kEpoch);
  const chunkio::plan::EpochRows all(order);
  std::vector<std::int64_t> delivered;
  for (std::int64_t step = 0; step < all.num_steps(); ++step) all.append_batch(step, delivered);
  return delivered;
}

chunkio::ChunkCacheSettings cache_of(const Cell& cell, const ChunkFile& file) {
  return chunkio::recommend_cache(file.info.num_chunks,
                                  cell.chunk_samples * file.info.sample_bytes(), cell.cache_bytes);
}

/// Something that delivers an epoch, again and again.
class Epochs {
 public:
  Epochs() = default;
  Epochs(const Epochs&) = delete;
  Epochs& operator=(const Epochs&) = delete;
  virtual ~Epochs() = default;

  /// What has to be done before an epoch, and is not timed.
  virtual void prepare() {}
  /// Delivers an epoch, or what of it is delivered within `seconds` if that is fair.
  /// \returns whether it was cut.
  virtual bool deliver(double seconds) = 0;
  /// Adds what the last epoch came to, but for its time.
  virtual void count(Trial& trial) const = 0;
  [[nodiscard]] virtual std::int64_t images() const = 0;
};

class LoaderEpochs : public Epochs {
 public:
  LoaderEpochs(const Cell& cell, const ChunkFile& file, const TrialSettings& settings)
      : loader_(Dataset::open(file.path), loader_options(cell, file, settings)),
        may_cut_(cell.order == "random") {}

  bool deliver(double seconds) override {
    const Clock::time_point start = Clock::now();
    loader_.start_epoch(kEpoch);
    while (loader_.next()) {
      cli::StopSignal::check();
      if (may_cut_ && seconds_since(start) > seconds) return true;
    }
    return false;
  }
  void count(Trial& trial) const override {
    const chunkio::LoaderStats stats = loader_.epoch_stats(kEpoch);
    trial.round.images += stats.images;
    trial.round.stall_seconds += stats.stall_seconds;
    trial.round.bytes_read += stats.bytes_read;
    trial.round.chunk_loads += stats.chunk_loads;
    StageSeconds& stages = trial.stages ? *trial.stages : trial.stages.emplace();
    stages.plan += stats.plan_seconds;
    stages.read += stats.read_seconds;
    stages.decode += stats.decode_seconds;
    stages.copy += stats.copy_seconds;
    stages.input_wait += stats.input_wait_seconds;
    stages.output_wait += stats.output_wait_seconds;
  }
  [[nodiscard]] std::int64_t images() const override { return loader_.samples_per_epoch(); }

 private:
  Loader loader_;
  bool may_cut_;
};

/// As h5py reads an image of a dataset: the caller waits for it.
class H5DreadEpochs : public Epochs {
 public:
  H5DreadEpochs(const Cell& cell, const ChunkFile& file, const TrialSettings& settings)
      : path_(file.path),
        cache_(cache_of(cell, file)),
        order_(delivery_order(cell, file, settings)),
        sample_bytes_(static_cast<std::size_t>(file.info.sample_bytes())),
        batch_(static_cast<std::size_t>(settings.batch_size) * sample_bytes_),
        reads_([this](const MeteredRead& read) {
          if (!read.raw_data) return;
          asked_ = true;
          bytes_read_ += read.bytes;
          if (limiter_) limiter_->transfer(read.bytes, {}, read.file_offset);
        }) {
    if (settings.limit) limiter_.emplace(*settings.limit);
    const auto guard = chunkio::h5::Library::lock();
    access_ = chunkio::h5::ListId(H5Pcreate(H5P_FILE_ACCESS));
    reads_.install(access_, path_);
  }
  ~H5DreadEpochs() override {
    const auto guard = chunkio::h5::Library::lock();
    baseline_.reset();
    access_ = {};
  }

  /// With an empty cache.
  void prepare() override {
    const auto guard = chunkio::h5::Library::lock();
    baseline_.reset();
    baseline_.emplace(path_, cache_, access_.get());
  }
  bool deliver(double seconds) override {
    constexpr std::size_t kReadsBetweenLooks = 16;
    const Clock::time_point start = Clock::now();
    const auto guard = chunkio::h5::Library::lock();
    images_ = loads_ = bytes_read_ = 0;
    const std::size_t places = batch_.size() / sample_bytes_;
    for (std::size_t i = 0; i < order_.size(); ++i) {
      if (i % kReadsBetweenLooks == 0) {
        cli::StopSignal::check();
        if (i > 0 && seconds_since(start) > seconds) break;
      }
      asked_ = false;
      baseline_->read(order_[i], batch_.data() + i % places * sample_bytes_);
      loads_ += asked_ ? 1 : 0;
      ++images_;
    }
    seconds_ = seconds_since(start);
    return images_ < images();
  }
  void count(Trial& trial) const override {
    trial.round.images += images_;
    trial.round.stall_seconds += seconds_;
    trial.round.bytes_read += bytes_read_;
    trial.round.chunk_loads += loads_;
  }
  [[nodiscard]] std::int64_t images() const override {
    return static_cast<std::int64_t>(order_.size());
  }

 private:
  std::string path_;
  chunkio::ChunkCacheSettings cache_;
  std::vector<std::int64_t> order_;
  std::size_t sample_bytes_;
  chunkio::base::HostBuffer batch_;

  bool asked_ = false;  // the file, for the sample that is being read
  std::int64_t bytes_read_ = 0;
  std::int64_t loads_ = 0;
  std::int64_t images_ = 0;
  double seconds_ = 0;

  std::optional<chunkio::io::DiskLimiter> limiter_;
  MeteredReads reads_;
  chunkio::h5::ListId access_;
  std::optional<H5DreadBaseline> baseline_;
};

std::unique_ptr<Epochs> make_epochs(const Cell& cell, const ChunkFile& file,
                                    const TrialSettings& settings) {
  if (cell.source == "h5dread") return std::make_unique<H5DreadEpochs>(cell, file, settings);
  return std::make_unique<LoaderEpochs>(cell, file, settings);
}

void make_cold(const ChunkFile& file, std::int64_t trial_bytes) {
  // What is on its way from the disk, read ahead, stays until it is there.
  constexpr int kTries = 20;
  constexpr std::chrono::milliseconds kWait{5};
  const std::int64_t allowed = std::max(trial_bytes / 100, kMetadataBytes);
  std::int64_t cached = put_out_of_page_cache(file.path);
  for (int i = 1; i < kTries && cached > allowed; ++i) {
    std::this_thread::sleep_for(kWait);
    cached = put_out_of_page_cache(file.path);
  }
  if (cached <= allowed) return;
  throw Error(ErrorCode::io_failed,
              "not cold: " + cli::format_bytes(cached) +
                  " of the file stay in the page cache, as on a file system in memory; choose "
                  "another --scratch, or measure --warm");
}

/// \returns whether the file has room there, and so is there.
bool bring_into_page_cache(const ChunkFile& file, const TrialSettings& settings) {
  const auto bytes = static_cast<std::int64_t>(std::filesystem::file_size(file.path));
  if (bytes > settings.memory_limit.value_or(this_machine().memory_bytes) / 2) return false;
  read_into_page_cache(file.path, cli::StopSignal::check);
  return true;
}

}  // namespace

std::optional<RowSelection> rows_of_trial(OrderMode order, std::int64_t num_samples,
                                          std::int64_t chunk_samples,
                                          const TrialSettings& settings) {
  const std::int64_t wanted = order == OrderMode::random ? settings.random_images : settings.images;
  if (wanted >= num_samples) return std::nullopt;
  const std::int64_t chunks = (wanted + chunk_samples - 1) / chunk_samples;
  if (order == OrderMode::random) {
    return RowSelection::of(draw(wanted, num_samples, settings.seed));
  }
  if (chunks * chunk_samples >= num_samples) return std::nullopt;
  if (order == OrderMode::sequential) return RowSelection({{0, chunks * chunk_samples}});
  std::vector<chunkio::RowRange> ranges;
  const std::int64_t num_chunks = (num_samples + chunk_samples - 1) / chunk_samples;
  for (const std::int64_t chunk : draw(chunks, num_chunks, settings.seed)) {
    ranges.push_back({chunk * chunk_samples, std::min((chunk + 1) * chunk_samples, num_samples)});
  }
  return RowSelection(std::move(ranges));
}

Loads predict(const Cell& cell, const ChunkFile& file, const TrialSettings& settings) {
  const chunkio::DatasetInfo& info = file.info;
  const bool filtered = !info.stored.filters.empty();
  // Chunks of the same file are about equally large; the simulator of the cache needs no more.
  const double stored_chunk =
      static_cast<double>(info.stored_bytes) / static_cast<double>(info.num_chunks);
  if (cell.source == "h5dread") {
    const std::vector<std::int64_t> order = delivery_order(cell, file, settings);
    chunkio::plan::CacheSimulator cache(
        {.shape = info.stored.shape,
         .chunk_shape = info.stored.chunk_shape,
         .filtered = filtered,
         .stored_bytes = filtered
                             ? std::vector<std::int64_t>(static_cast<std::size_t>(info.num_chunks),
                                                         static_cast<std::int64_t>(stored_chunk))
                             : std::vector<std::int64_t>()},
        cache_of(cell, file));
    cache.read_each(order);
    const chunkio::plan::CacheCounts& counts = cache.counts();
    return {static_cast<double>(counts.loads + counts.piece_reads), counts.hit_rate(),
            counts.read_amplification()};
  }

  const Loader loader(Dataset::open(file.path), loader_options(cell, file, settings));
  const EpochOrder order(loader.row_groups(),
                         {.mode = loader.options().order.mode,
                          .seed = settings.seed,
                          .batch_size = settings.batch_size,
                          .window_groups = loader.window_groups()},
                         kEpoch);
  std::int64_t group_reads = 0;
  chunkio::plan::WindowPlan plan;
  for (std::int64_t window = 0; window < chunkio::plan::num_windows(order, 0); ++window) {
    chunkio::plan::plan_window(order, 0, window, plan);
    group_reads += static_cast<std::int64_t>(plan.reads.size());
  }
  const auto loads = static_cast<double>(group_reads);
  const auto images = static_cast<double>(loader.samples_per_epoch());
  Loads prediction = {loads, std::max(1 - loads / images, 0.0), std::nullopt};
  // Rows of an unfiltered chunk are read alone or with what lies between them, as the source likes.
  if (filtered) {
    prediction.read_amplification =
        loads * stored_chunk / (images * static_cast<double>(info.sample_bytes()));
  } else if (cell.order != "random") {
    prediction.read_amplification = 1.0;
  }
  return prediction;
}

Trial take_trial(const Cell& cell, const ChunkFile& file, const TrialSettings& settings) {
  const bool fills_page_cache = !settings.cold && !bring_into_page_cache(file, settings);
  const NewMemory batches;
  const std::unique_ptr<Epochs> epochs = make_epochs(cell, file, settings);
  batches.touch();
  const std::int64_t trial_bytes = epochs->images() * file.info.sample_bytes();
  // Under a limit that memory would count as this process's, and the kernel end it for that.
  if (settings.cold && !settings.memory_limit) touch_free_memory(trial_bytes);
  if (fills_page_cache) {
    epochs->prepare();
    epochs->deliver(kLongestTrial);
  }

  Trial trial;
  const Clock::time_point begin = Clock::now();
  do {
    epochs->prepare();
    if (settings.cold) make_cold(file, trial_bytes);
    const Clock::time_point start = Clock::now();
    trial.cut = epochs->deliver(kLongestTrial);
    trial.round.seconds += seconds_since(start);
    epochs->count(trial);
  } while (trial.round.seconds < settings.seconds && !trial.cut &&
           seconds_since(begin) < kLongestTrial);
  const Round& round = trial.round;
  const auto images = static_cast<double>(round.images);
  // What a loader read ahead for batches that nobody waited for would count against those that were
  // delivered.
  if (images > 0 && (!trial.cut || cell.source == "h5dread")) {
    const double loads = static_cast<double>(round.chunk_loads) / images;
    if (!trial.cut) trial.counted.chunk_loads = loads * static_cast<double>(epochs->images());
    trial.counted.hit_rate = std::max(1 - loads, 0.0);
    // Of what libhdf5 decodes, a loader knows the decoded bytes only.
    if (cell.source != "hdf5" || file.info.stored.filters.empty()) {
      trial.counted.read_amplification = static_cast<double>(round.bytes_read) /
                                         (images * static_cast<double>(file.info.sample_bytes()));
    }
  }
  return trial;
}

std::uint64_t digest_of_first_rows(const Cell& cell, const ChunkFile& file, std::int64_t num_rows) {
  const auto sample_bytes = static_cast<std::size_t>(file.info.sample_bytes());
  std::uint64_t sum = 0;
  const auto add = [&](std::int64_t row, const std::byte* pixels) {
    sum +=
        chunkio::base::digest({pixels, sample_bytes}) * (2 * static_cast<std::uint64_t>(row) + 1);
  };
  if (cell.source == "h5dread") {
    H5DreadBaseline images(file.path, cache_of(cell, file));
    std::vector<std::byte> pixels(sample_bytes);
    for (std::int64_t row = 0; row < num_rows; ++row) {
      images.read(row, pixels.data());
      add(row, pixels.data());
    }
    return sum;
  }
  Loader loader(Dataset::open(file.path),
                {.batch_size = 64,
                 .rows = RowSelection({{0, num_rows}}),
                 .order = {.mode = OrderMode::sequential, .window_bytes = 1},
                 .memory = {.budget = std::int64_t{1} << 50},
                 .io = {.num_threads = cell.threads,
                        .source = chunkio::from_string<chunkio::SourceKind>(cell.source),
                        .num_epochs = kEpoch + 1}});
  for (const chunkio::Batch& batch : loader.epoch(kEpoch)) {
    const std::byte* pixels = batch.images().data();
    for (const std::int64_t row : batch.sample_ids()) {
      add(row, pixels);
      pixels += sample_bytes;
    }
  }
  return sum;
}

}  // namespace bench
