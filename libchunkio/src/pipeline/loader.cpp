#include <sched.h>

#include <algorithm>
#include <string>
#include <utility>

#include <chunkio/loader.hpp>

#include "base/checked_math.hpp"
#include "h5/dataset_impl.hpp"
#include "io/source_select.hpp"
#include "pipeline/ring.hpp"
#include "pipeline/window_reader.hpp"

namespace chunkio {
namespace {

constexpr std::int64_t kMaxDefaultThreads = 8;
// Far beyond use; they keep the sums of the memory budget in range.
constexpr std::int64_t kMaxThreads = 1024;
constexpr std::int64_t kMaxSlots = std::int64_t{1} << 20;
// Stack pages touched, queues, the heap's own overhead: small against everything counted exactly.
constexpr std::int64_t kOverheadPerThread = std::int64_t{256} << 10;

std::int64_t default_threads() {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  const int count = ::sched_getaffinity(0, sizeof(cpus), &cpus) == 0 ? CPU_COUNT(&cpus) : 1;
  return std::clamp<std::int64_t>(count, 1, kMaxDefaultThreads);
}

/// The samples of a full row group, as libchunkio/doc/order.md defines it for a Loader.
std::int64_t choose_group_samples(const DatasetInfo& info, std::int64_t window_bytes) {
  const std::int64_t sample_bytes = info.sample_bytes();
  const std::int64_t half_window = window_bytes / 2 / sample_bytes;
  if (info.stored.chunked) {
    const std::int64_t chunk_rows = std::min(info.stored.chunk_shape[0], info.num_samples);
    const bool filtered = !info.stored.filters.empty();
    if (filtered || chunk_rows <= half_window) return chunk_rows;
  }
  const std::int64_t run = std::min(kDefaultChunkBytes / sample_bytes, half_window);
  return std::clamp<std::int64_t>(run, 1, info.num_samples);
}

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
  require(options.window_bytes >= 1, "window_bytes must be >= 1", options.window_bytes);
  require_between(0, options.num_threads, kMaxThreads, "num_threads");
  require_between(1, options.prefetch_depth, kMaxSlots, "prefetch_depth");
  require_between(1, options.max_held, kMaxSlots, "max_held");
  require(options.memory_budget >= 1, "memory_budget must be >= 1", options.memory_budget);
  require(!options.num_epochs || *options.num_epochs >= 0, "num_epochs must be >= 0",
          options.num_epochs.value_or(0));
}

/// Labels and the fields asked for, labels first.
std::vector<pipeline::RingField> choose_fields(const Dataset& dataset,
                                               const LoaderOptions& options) {
  std::vector<pipeline::RingField> fields;
  const auto add = [&](const FieldInfo& info) {
    fields.push_back({.info = info, .row_bytes = Dataset::row_bytes(info)});
  };
  if (dataset.info().labels) add(*dataset.info().labels);
  for (const std::string& name : options.fields) {
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
                           std::int64_t sample_bytes) {
  return {.mode = options.order,
          .seed = options.seed,
          .batch_size = options.batch_size,
          .window_groups = std::max<std::int64_t>(
              options.window_bytes / (groups.group_samples() * sample_bytes), 1),
          .rank = options.rank,
          .world_size = options.world_size,
          .lanes = options.lanes,
          .uneven = options.uneven,
          .drop_last = options.drop_last};
}

}  // namespace

struct Loader::Impl {
  Impl(Dataset dataset_in, LoaderOptions options_in)
      : dataset(std::move(dataset_in)), options(std::move(options_in)) {
    const DatasetInfo& info = dataset.info();
    check_options(options);
    if (options.num_threads == 0) options.num_threads = default_threads();
    const std::int64_t group_samples = choose_group_samples(info, options.window_bytes);
    groups.emplace(group_samples, info.num_samples);
    io::SelectedSource selected = io::select_source(dataset.impl(), options.source, group_samples);
    source_kind = selected.kind;
    source_reason = std::move(selected.reason);

    pipeline::WindowReaderOptions reader_options{
        .order = order_options(options, *groups, info.sample_bytes()),
        .num_threads = options.num_threads,
        .max_held = options.max_held,
        .num_epochs = options.num_epochs};
    window_groups = reader_options.order.window_groups;
    const EpochOrder order(*groups, reader_options.order, 0);
    steps = order.num_steps();
    samples = order.num_delivered();
    options.lanes = order.options().lanes;

    pipeline::RingLayout layout{.rows = steps == 0 ? 1 : order.batch_rows(0),
                                .sample_shape = info.sample_shape(),
                                .sample_bytes = static_cast<std::size_t>(info.sample_bytes()),
                                .has_labels = info.labels.has_value(),
                                .fields = choose_fields(dataset, options)};
    const std::int64_t num_slots = ring_slots(order);
    reserve(order, layout, num_slots, *selected.source);

    pipeline::ResidentFields resident;
    for (const pipeline::RingField& field : layout.fields) {
      std::vector<std::byte> values(static_cast<std::size_t>(info.num_samples) * field.row_bytes);
      dataset.read_field(field.info.name, 0, info.num_samples, values);
      resident.push_back(std::move(values));
    }
    ring = std::make_shared<pipeline::Ring>(std::move(layout), num_slots);
    reader = std::make_unique<pipeline::WindowReader>(
        *groups, reader_options, std::move(selected.source), std::move(resident), ring);
  }

  /// Slots for two windows in flight (see WindowReader), for the batches wanted ahead, and for
  /// those held.
  [[nodiscard]] std::int64_t ring_slots(const EpochOrder& order) const {
    const std::int64_t window = plan::max_window_samples(order, 1);
    const std::int64_t span =
        window == 0 ? 0 : (window + plan::lane_batch(order) - 2) / plan::lane_batch(order) + 1;
    // A window never touches more batches than the epoch has.
    return std::max(2 * std::min(span, steps), options.prefetch_depth) + options.max_held;
  }

  /// Adds up what will be allocated and refuses what does not fit.
  void reserve(const EpochOrder& order, const pipeline::RingLayout& layout, std::int64_t num_slots,
               const ChunkSource& source) {
    const DatasetInfo& info = dataset.info();
    const std::int64_t rows_in_flight =
        num_slots * layout.rows + plan::max_window_samples(order, 1);
    std::int64_t field_row_bytes = 0;
    for (const auto& field : layout.fields)
      field_row_bytes += static_cast<std::int64_t>(field.row_bytes);

    const auto product = base::checked_multiply(
        num_slots * layout.rows, info.sample_bytes() + field_row_bytes + std::int64_t{8});
    const auto field_bytes = base::checked_multiply(info.num_samples, field_row_bytes);
    constexpr std::int64_t kSane = std::int64_t{1} << 50;
    std::int64_t total = kSane;
    if (product && field_bytes && *product < kSane && *field_bytes < kSane) {
      total = pipeline::Ring::footprint(layout, num_slots) + *field_bytes +
              source.memory_bytes(options.num_threads) + options.num_threads * kOverheadPerThread +
              // plans: a PlannedRow for each row, a GroupVisit for each group, planning's tables
              4 * rows_in_flight * static_cast<std::int64_t>(sizeof(plan::PlannedRow)) +
              options.num_threads * groups->group_samples() *
                  static_cast<std::int64_t>(sizeof(RowTarget)) +
              // permutations of the row groups of two epochs and the one of the constructor
              3 * std::min<std::int64_t>(groups->num_groups(), 65536) * 8;
    }
    if (total > options.memory_budget) {
      throw Error(ErrorCode::out_of_resources,
                  info.path + ": memory_budget " + std::to_string(options.memory_budget) +
                      " bytes is too small; batches of " + std::to_string(layout.rows) +
                      " in windows of " + std::to_string(window_groups) +
                      " row groups need at least " + std::to_string(total) +
                      " bytes: raise memory_budget, or lower window_bytes, batch_size or max_held");
    }
    memory = total;
  }

  Dataset dataset;
  LoaderOptions options;
  std::optional<RowGroups> groups;
  SourceKind source_kind = SourceKind::automatic;
  std::string source_reason;
  std::int64_t window_groups = 0;
  std::int64_t steps = 0;
  std::int64_t samples = 0;
  std::int64_t memory = 0;
  std::shared_ptr<pipeline::Ring> ring;
  std::unique_ptr<pipeline::WindowReader> reader;
};

Loader::Loader(Dataset dataset, LoaderOptions options)
    : impl_(std::make_unique<Impl>(std::move(dataset), std::move(options))) {}
Loader::Loader(Loader&&) noexcept = default;
Loader& Loader::operator=(Loader&&) noexcept = default;
Loader::~Loader() = default;

EpochRange Loader::epoch(std::int64_t epoch) {
  start_epoch(epoch);
  return EpochRange(this);
}

void Loader::start_epoch(std::int64_t epoch) { impl_->reader->start(epoch); }

std::optional<Batch> Loader::next() {
  auto slot = impl_->reader->next();
  if (!slot) return std::nullopt;
  return Batch(std::move(slot));
}

std::int64_t Loader::num_steps() const noexcept { return impl_->steps; }
std::int64_t Loader::samples_per_epoch() const noexcept { return impl_->samples; }
LoaderStats Loader::stats() const { return impl_->reader->stats(); }
LoaderStats Loader::epoch_stats(std::int64_t epoch) const {
  return impl_->reader->epoch_stats(epoch);
}
const LoaderOptions& Loader::options() const noexcept { return impl_->options; }
const Dataset& Loader::dataset() const noexcept { return impl_->dataset; }
SourceKind Loader::source() const noexcept { return impl_->source_kind; }
std::string Loader::source_reason() const { return impl_->source_reason; }
std::int64_t Loader::window_groups() const noexcept { return impl_->window_groups; }
const RowGroups& Loader::row_groups() const noexcept { return *impl_->groups; }
std::int64_t Loader::memory_bytes() const noexcept { return impl_->memory; }
std::int64_t Loader::num_threads() const noexcept { return impl_->options.num_threads; }

EpochRange::Iterator::Iterator(Loader* loader) : loader_(loader), batch_(loader->next()) {}

EpochRange::Iterator& EpochRange::Iterator::operator++() {
  batch_.reset();
  batch_ = loader_->next();
  return *this;
}

}  // namespace chunkio
