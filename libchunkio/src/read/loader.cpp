#include <algorithm>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <chunkio/loader.hpp>

#include "base/access.hpp"
#include "base/checked_math.hpp"
#include "base/cpus.hpp"
#include "base/wait_hook.hpp"
#include "h5/dataset_impl.hpp"
#include "h5/shard_set.hpp"
#include "plan/group_samples.hpp"
#include "plan/ring_slots.hpp"
#include "read/loader_parts.hpp"
#include "read/loader_state.hpp"
#include "read/open_arrays.hpp"
#include "read/ring.hpp"
#include "read/row_filter.hpp"
#include "read/window_reader.hpp"

namespace chunkio {
namespace {

// Far beyond use; they keep the sums of the memory budget in range.
constexpr std::int64_t kMaxThreads = 1024;
constexpr std::int64_t kMaxSlots = std::int64_t{1} << 20;
// Stack pages touched, queues, the heap's own overhead: small against everything counted exactly.
constexpr std::int64_t kOverheadPerThread = std::int64_t{256} << 10;

void require(bool condition, const char* message, std::int64_t got) {
  if (!condition)
    throw Error(ErrorCode::invalid_argument, message + (", got " + std::to_string(got)));
}

void require_between(std::int64_t lowest, std::int64_t value, std::int64_t highest,
                     const std::string& name) {
  require(lowest <= value && value <= highest,
          (name + " must be between " + std::to_string(lowest) + " and " + std::to_string(highest))
              .c_str(),
          value);
}

void check_options(const LoaderOptions& options) {
  require(options.batch_size >= 1, "batch_size must be >= 1", options.batch_size);
  require(options.order.window_bytes >= 1, "window_bytes must be >= 1", options.order.window_bytes);
  require_between(1, options.order.version, plan::kNewestOrderVersion, "order version");
  require_between(0, options.io.num_threads, kMaxThreads, "num_threads");
  require_between(1, options.memory.prefetch_depth, kMaxSlots, "prefetch_depth");
  require_between(1, options.memory.max_held, kMaxSlots, "max_held");
  require(options.memory.budget >= 1, "memory_budget must be >= 1", options.memory.budget);
  const double release_timeout = options.memory.release_timeout_seconds;
  if (!(release_timeout >= 0 && release_timeout <= base::kMaxTimeoutSeconds)) {
    throw Error(ErrorCode::invalid_argument,
                "release_timeout_seconds must be between 0 and 1e6, got " +
                    std::to_string(release_timeout));
  }
  require(!options.io.num_epochs || *options.io.num_epochs >= 0, "num_epochs must be >= 0",
          options.io.num_epochs.value_or(0));
  if (options.io.disk_limit) require_valid(*options.io.disk_limit);
}

/// Labels and the fields asked for, labels first.
std::vector<read::RingField> choose_fields(const Dataset& dataset, const LoaderOptions& options) {
  std::vector<read::RingField> fields;
  const auto add = [&](const FieldInfo& info) {
    fields.push_back({.info = info, .row_bytes = Dataset::row_bytes(info)});
  };
  if (dataset.info().labels) add(*dataset.info().labels);
  for (const std::string& name : options.fields) {
    if (name == dataset.info().leading.name) continue;  // delivered anyway
    const std::optional<FieldInfo> field = dataset.find_field(name);
    if (!field) {
      std::string known;
      for (const FieldInfo& other : dataset.info().fields) known += " " + other.name;
      throw Error(ErrorCode::not_found, dataset.info().path + " has no field '" + name +
                                            "'; it has" + (known.empty() ? " none" : ":" + known));
    }
    add(*field);
  }
  return fields;
}

/// The order's options, with W from the window's bytes.
OrderOptions order_options(const LoaderOptions& options, const RowGroups& groups,
                           std::int64_t row_bytes) {
  return {.mode = options.order.mode,
          .seed = options.seed,
          .batch_size = options.batch_size,
          .window_groups = std::max<std::int64_t>(
              options.order.window_bytes / (groups.group_samples() * row_bytes), 1),
          .rank = options.ranks.rank,
          .world_size = options.ranks.world_size,
          .lanes = options.order.lanes,
          .uneven = options.order.uneven,
          .drop_last = options.order.drop_last};
}

/// With all slots of the ring filled, or being filled; and what was read together with them: of
/// each lane, rows of the window that was begun, and of the one that is being handed over.
read::InFlight in_flight(const EpochOrder& order, std::int64_t num_slots) {
  const OrderOptions& options = order.options();
  const RowGroups& groups = order.groups();
  const std::int64_t window = std::max<std::int64_t>(plan::max_window_samples(order, 1), 1);
  const std::int64_t windows = base::ceil_divide(num_slots * order.batch_rows(0), window) +
                               2 * (options.lanes / options.world_size);
  const std::int64_t rows = std::min(windows * window, groups.num_samples());
  const bool random = options.mode == OrderMode::random;
  return {.rows = rows,
          .groups = std::min(random ? rows : windows * options.window_groups, groups.num_groups())};
}

/// An epoch without batches is no epoch that anybody wanted.
void require_batches(const EpochOrder& order, const std::string& path) {
  if (order.num_steps() > 0 || !order.options().drop_last) return;
  const OrderOptions& options = order.options();
  const std::int64_t num_samples = order.groups().num_samples();
  const std::int64_t of_lane = options.uneven == Uneven::drop
                                   ? num_samples / options.lanes
                                   : base::ceil_divide(num_samples, options.lanes);
  const std::int64_t most = of_lane * (options.lanes / options.world_size);
  throw Error(ErrorCode::invalid_argument,
              path + ": batch_size " + std::to_string(options.batch_size) + " is more than the " +
                  std::to_string(most) + " samples" +
                  (options.world_size > 1 ? " of each rank" : "") +
                  ", and drop_last leaves out the only batch; lower batch_size to " +
                  std::to_string(most) + " or less, or turn drop_last off");
}

}  // namespace

struct Loader::Impl {
  Impl(Dataset dataset_in, LoaderOptions options_in)
      : dataset(std::move(dataset_in)), options(std::move(options_in)) {
    const DatasetInfo& info = dataset.info();
    check_options(options);
    if (options.io.num_threads == 0) options.io.num_threads = base::default_threads();
    selection = read::filter_rows(dataset, options);
    const auto [group_samples, first_version] =
        plan::grouping(info, options.order.window_bytes, options.order.version);
    order_version = first_version;
    const std::vector<std::int64_t> file_rows = h5::rows_of_files(*internal::Access::impl(dataset));
    groups = selection ? RowGroups(group_samples, file_rows, *selection)
                       : RowGroups(group_samples, file_rows);
    options.io.verify = read::resolved_verify(dataset, *groups, options);

    read::WindowReaderOptions reader_options{
        .order = order_options(options, *groups, plan::mean_row_bytes(info)),
        .num_threads = options.io.num_threads,
        .max_held = options.memory.max_held,
        .when_held = options.memory.when_held,
        .release_timeout = base::Seconds(options.memory.release_timeout_seconds),
        .on_wait = options.on_wait,
        .num_epochs = options.io.num_epochs,
        .on_error = options.io.on_error,
        .check_whole_file = [file = internal::Access::impl(dataset)] { file->check_unchanged(); }};
    window_groups = reader_options.order.window_groups;
    const EpochOrder order(*groups, reader_options.order, 0);
    require_batches(order, info.path);
    steps = order.num_steps();
    // Lanes, and so ranks, differ by one sample at most; the last lane is as long as any.
    global_steps = base::ceil_divide(plan::lane_delivered(order, order.options().lanes - 1),
                                     plan::lane_batch(order));
    samples = order.num_delivered();
    options.order.lanes = order.options().lanes;

    read::RingLayout layout = read::ring_layout(info, order.batch_rows(0));
    layout.seed = options.seed;
    layout.has_labels = info.labels.has_value();
    layout.fields = choose_fields(dataset, options);
    const std::int64_t num_slots =
        plan::ring_slots({.window = plan::max_window_samples(order, 1),
                          .batch = plan::lane_batch(order),
                          .num_steps = steps,
                          .prefetch_depth = options.memory.prefetch_depth,
                          .max_held = options.memory.max_held});
    read::OpenedArrays opened =
        read::open_arrays(dataset, *groups, options, in_flight(order, num_slots), layout);
    source_kind = opened.source;
    source_reason = std::move(opened.reason);
    trials = std::move(opened.trials);
    std::vector<read::StreamedArray> arrays = std::move(opened.arrays);
    reader_options.prefetch_bytes = std::max(reader_options.prefetch_bytes, opened.prefetch_bytes);
    reserve(order, reader_options, layout, num_slots, arrays,
            opened.read_ahead_bytes + opened.sparse_bytes);
    facts = {.source = source_kind,
             .order = options.order.mode,
             .verify = options.io.verify,
             .resident = options.memory.resident,
             .filtered = !info.stored.filters.empty() || info.encoded,
             .encoded = info.encoded.has_value(),
             .random_crops = info.encoded && info.encoded->random_crops,
             .direct_io = opened.direct_io,
             .reads_ahead = opened.reads_ahead,
             .num_cpus = base::usable_cpus(),
             .group_samples = groups->group_samples(),
             .prefetch_depth = options.memory.prefetch_depth,
             .image_bytes = groups->num_samples() * info.sample_bytes(),
             .spare_bytes = options.memory.budget - memory};

    read::CachedFields cached = read_cached_fields(layout, arrays);
    ring = std::make_shared<read::Ring>(std::move(layout), num_slots);
    reader = std::make_unique<read::WindowReader>(*groups, std::move(reader_options),
                                                  std::move(arrays), std::move(cached), ring);
  }

  /// Whether this is a child forked from the process of the loader.
  [[nodiscard]] bool forked() const noexcept { return !ring->in_own_process(); }

  static bool is_streamed(std::size_t field, const std::vector<read::StreamedArray>& arrays) {
    return std::any_of(arrays.begin(), arrays.end(),
                       [&](const auto& array) { return array.field == field; });
  }

  /// All rows of the fields that are not streamed.
  [[nodiscard]] read::CachedFields read_cached_fields(
      const read::RingLayout& layout, const std::vector<read::StreamedArray>& arrays) const {
    read::CachedFields cached(layout.fields.size());
    const std::int64_t num_rows = dataset.info().num_samples;
    for (std::size_t i = 0; i < cached.size(); ++i) {
      if (is_streamed(i, arrays)) continue;
      const read::RingField& field = layout.fields[i];
      cached[i].resize(static_cast<std::size_t>(num_rows) * field.row_bytes);
      dataset.read_field(field.info.name, 0, num_rows, cached[i]);
    }
    return cached;
  }

  /// Adds up what will be allocated and refuses what does not fit.
  void reserve(const EpochOrder& order, const read::WindowReaderOptions& reader_options,
               const read::RingLayout& layout, std::int64_t num_slots,
               const std::vector<read::StreamedArray>& arrays, std::int64_t read_ahead_bytes) {
    const DatasetInfo& info = dataset.info();
    const std::size_t num_arrays = 1 + layout.fields.size();  // with fields of either kind
    std::int64_t field_row_bytes = 0;                         // of all fields
    std::int64_t cached_row_bytes = 0;                        // of cached fields
    for (std::size_t i = 0; i < layout.fields.size(); ++i) {
      const auto row_bytes = static_cast<std::int64_t>(layout.fields[i].row_bytes);
      field_row_bytes += row_bytes;
      if (!is_streamed(i, arrays)) cached_row_bytes += row_bytes;
    }

    const auto product = base::checked_multiply(
        num_slots * layout.rows,
        static_cast<std::int64_t>(layout.leading.row_bytes) + field_row_bytes + std::int64_t{8});
    const auto cached_bytes = base::checked_multiply(info.num_samples, cached_row_bytes);
    constexpr std::int64_t kSane = std::int64_t{1} << 50;
    std::int64_t total = kSane;
    if (product && cached_bytes && *product < kSane && *cached_bytes < kSane) {
      total = read::Ring::footprint(layout, num_slots) + *cached_bytes +
              options.io.num_threads * kOverheadPerThread + read_ahead_bytes +
              read::WindowReader::footprint(order, reader_options, num_slots, num_arrays) +
              // the selection, and the orders of two epochs and of the constructor
              groups->memory_bytes() + 3 * order.memory_bytes();
      for (const read::StreamedArray& array : arrays) {
        total += array.source->memory_bytes(options.io.num_threads);
      }
    }
    if (total > options.memory.budget) {
      throw Error(ErrorCode::out_of_resources,
                  info.path + ": memory_budget " + std::to_string(options.memory.budget) +
                      " bytes is too small; batches of " + std::to_string(layout.rows) +
                      " in windows of " + std::to_string(window_groups) +
                      " row groups need at least " + std::to_string(total) +
                      " bytes: raise memory_budget, or lower window_bytes, batch_size or max_held",
                  "memory_budget", "window_bytes");
    }
    memory = total;
  }

  /// The order and contents, and the place where the consumer stands.
  [[nodiscard]] read::LoaderState state() {
    return state_at(reader->position(), ended);  // throws in a forked child
  }

  /// Thread-safe. \param at_end  whether next() has said that the epoch is over.
  [[nodiscard]] read::LoaderState state_at(const LoaderPosition& position, bool at_end) {
    const std::lock_guard lock(fingerprint_mutex);
    if (!fingerprint) fingerprint = read::contents_fingerprint(dataset);
    return {.order_version = order_version,
            .epoch = position.epoch,
            .step = position.step == steps && at_end ? global_steps : position.step,
            .seed = options.seed,
            .samples = groups->num_samples(),
            .group_samples = groups->group_samples(),
            .window_groups = window_groups,
            .lanes = options.order.lanes,
            .global_batch = options.batch_size * options.ranks.world_size,
            .order = options.order.mode,
            .uneven = options.order.uneven,
            .drop_last = options.order.drop_last,
            .selection = read::selection_digest(selection ? &*selection : nullptr,
                                                dataset.info().num_samples),
            .fingerprint = *fingerprint};
  }

  [[nodiscard]] read::Place checked_place(const read::LoaderState& wanted) {
    require_same_order(wanted, state_at({}, false), dataset.info().path);
    if (wanted.step > global_steps) {
      throw Error(ErrorCode::invalid_argument,
                  dataset.info().path + ": the loader state is damaged: it is at batch " +
                      std::to_string(wanted.step) + " of epochs of " +
                      std::to_string(global_steps) + " batches");
    }
    return {{wanted.epoch, std::min(wanted.step, steps)}, wanted.step == global_steps};
  }

  void restore(const read::LoaderState& wanted) {
    const auto [position, at_end] = checked_place(wanted);
    reader->start(position.epoch, position.step);
    ended = at_end;
    restored_epoch = position.epoch;
  }

  void start_epoch(std::int64_t epoch) {
    // Where restore() went is kept until the first batch is asked for.
    if (restored_epoch == epoch) {
      const LoaderPosition position = reader->position();
      reader->start(epoch, position.step);
      return;
    }
    reader->start(epoch);
    ended = false;
    restored_epoch.reset();
  }

  [[nodiscard]] std::shared_ptr<const internal::BatchSlot> next(const std::stop_token& stop,
                                                                std::chrono::nanoseconds timeout) {
    auto slot = reader->next(stop, timeout);
    if (!slot) ended = true;
    restored_epoch.reset();
    return slot;
  }

  /// Thread-safe.
  [[nodiscard]] SourceKind source() const noexcept { return trials ? trials->kind() : source_kind; }
  [[nodiscard]] std::string describe_source() const {
    return trials ? source_reason + "; " + trials->describe() : source_reason;
  }

  [[nodiscard]] LoaderStats with_facts(LoaderStats stats) const {
    stats.facts = facts;
    stats.facts.source = source();
    return stats;
  }

  Dataset dataset;
  LoaderOptions options;
  std::optional<RowSelection> selection;  // absent: all rows
  std::optional<RowGroups> groups;
  SourceKind source_kind = SourceKind::automatic;
  std::string source_reason;
  std::shared_ptr<const sources::SourceTrials> trials;  // or none
  std::int64_t order_version = 1;                       // the first that has this order
  std::int64_t window_groups = 0;
  std::int64_t steps = 0;         // of this rank
  std::int64_t global_steps = 0;  // of the rank that has most
  std::int64_t samples = 0;
  std::int64_t memory = 0;
  LoaderFacts facts;
  std::mutex fingerprint_mutex;
  std::optional<std::string> fingerprint;  // computed when a state is asked for

  // Of the consumer's thread.
  /// next() has said that the epoch is over. With Uneven::exact a rank may have one batch less than
  /// another; being told so is its part of the last global batch.
  bool ended = false;
  std::optional<std::int64_t> restored_epoch;  // no batch of it was asked for yet
  std::shared_ptr<read::Ring> ring;
  std::unique_ptr<read::WindowReader> reader;
};

Loader::Loader(Dataset dataset, LoaderOptions options)
    : impl_(std::make_unique<Impl>(std::move(dataset), std::move(options))) {}
Loader::Loader(Loader&&) noexcept = default;
Loader& Loader::operator=(Loader&& other) noexcept {
  Loader moved(std::move(other));
  std::swap(impl_, moved.impl_);
  return *this;
}
Loader::~Loader() {
  // In a forked child there are no threads to join, but mutexes they may hold and condition
  // variables that wait for them: what lies there is left to the end of the process.
  if (impl_ && impl_->forked()) static_cast<void>(impl_.release());
}

Loader::Impl& Loader::impl() const {
  if (impl_) return *impl_;
  throw Error(ErrorCode::invalid_argument,
              "this Loader was moved from; use the one that it was moved into");
}

Loader Loader::resume(Dataset dataset, LoaderOptions options, std::string_view state) {
  const read::LoaderState wanted = read::parse_state(state);
  const DatasetInfo& info = dataset.info();
  const std::string fingerprint = read::contents_fingerprint(dataset);
  read::require_same_contents(wanted, fingerprint, info.path);

  const std::int64_t world_size = options.ranks.world_size;
  require(world_size >= 1, "world_size must be >= 1", world_size);
  if (wanted.global_batch % world_size != 0 || wanted.lanes % world_size != 0) {
    throw Error(ErrorCode::invalid_argument,
                info.path + ": the loader state has " + std::to_string(wanted.lanes) +
                    " lanes and global batches of " + std::to_string(wanted.global_batch) +
                    ", and world_size " + std::to_string(world_size) +
                    " does not divide both; use one that does. " + read::kLanesHint);
  }
  options.batch_size = wanted.global_batch / world_size;
  options.order.lanes = wanted.lanes;
  options.order.version = wanted.order_version;
  // The smallest window that gives the same k and W (libchunkio/doc/order.md).
  const auto group_bytes = base::checked_multiply(wanted.group_samples, plan::mean_row_bytes(info));
  const auto window_bytes =
      group_bytes ? base::checked_multiply(wanted.window_groups, *group_bytes) : group_bytes;
  if (!window_bytes) {
    throw Error(ErrorCode::invalid_argument,
                info.path + ": the loader state is damaged: its windows have more than 2^63 bytes");
  }
  options.order.window_bytes = *window_bytes;

  Loader loader(std::move(dataset), std::move(options));
  loader.impl_->restore(wanted);
  return loader;
}

EpochRange<Batch> Loader::epoch(std::int64_t epoch) & {
  start_epoch(epoch);
  return EpochRange<Batch>([this] { return next(); });
}

void Loader::start_epoch(std::int64_t epoch) { impl().start_epoch(epoch); }

std::optional<Batch> Loader::next(const std::stop_token& stop, std::chrono::nanoseconds timeout) {
  auto slot = impl().next(stop, timeout);
  if (!slot) return std::nullopt;
  return Batch(std::move(slot));
}

std::string Loader::state() const { return read::to_json(impl().state()); }
std::string Loader::state_at(const LoaderPosition& position, bool ended) const {
  impl().reader->require_own_process();
  return read::to_json(impl().state_at(position, ended));
}
void Loader::restore(std::string_view state) {
  impl().reader->require_own_process();
  impl().restore(read::parse_state(state));
}
LoaderPosition Loader::position() const { return impl().reader->position(); }

std::int64_t Loader::num_steps() const { return impl().steps; }
std::int64_t Loader::samples_per_epoch() const { return impl().samples; }
LoaderStats Loader::stats() const { return impl().with_facts(impl().reader->stats()); }
LoaderStats Loader::epoch_stats(std::int64_t epoch) const {
  return impl().with_facts(impl().reader->epoch_stats(epoch));
}
std::vector<SkippedRows> Loader::skipped() const { return impl().reader->skipped(); }
const LoaderOptions& Loader::options() const { return impl().options; }
const Dataset& Loader::dataset() const { return impl().dataset; }
SourceKind Loader::source() const { return impl().source(); }
std::string Loader::source_reason() const { return impl().describe_source(); }
std::int64_t Loader::window_groups() const { return impl().window_groups; }
const RowGroups& Loader::row_groups() const { return *impl().groups; }
std::int64_t Loader::memory_bytes() const { return impl().memory; }
std::int64_t Loader::num_threads() const { return impl().options.io.num_threads; }

std::shared_ptr<read::Ring> read::ring_of(const Loader& loader) {
  return internal::Access::impl(loader).ring;
}

EpochOrder read::epoch_order_of(const Loader& loader, std::int64_t epoch) {
  const auto& impl = internal::Access::impl(loader);
  return {*impl.groups,
          order_options(impl.options, *impl.groups, plan::mean_row_bytes(impl.dataset.info())),
          epoch};
}

std::optional<read::Place> read::restored_place(const Loader& loader) {
  const auto& impl = internal::Access::impl(loader);
  if (!impl.restored_epoch) return std::nullopt;
  return Place{impl.reader->position(), impl.ended};
}

void read::start_at(Loader& loader, const LoaderPosition& position) {
  auto& impl = internal::Access::impl(loader);
  impl.reader->start(position.epoch, position.step);
  impl.ended = false;
  impl.restored_epoch.reset();
}

read::Place read::place_of(const Loader& loader, std::string_view state) {
  return internal::Access::impl(loader).checked_place(parse_state(state));
}

}  // namespace chunkio
