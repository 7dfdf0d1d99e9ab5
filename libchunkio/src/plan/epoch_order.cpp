#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include <chunkio/error.hpp>

#include "base/checked_math.hpp"
#include "plan/epoch_order_impl.hpp"

namespace chunkio {
namespace {

// Lanes are a word of a Philox counter, rows and delivery indexes of a window are 32-bit numbers;
// one is kept free for the sample that pads a lane.
constexpr std::int64_t kMaxWord = std::numeric_limits<std::uint32_t>::max();
constexpr std::int64_t kMaxWindowSamples = kMaxWord - 1;

[[noreturn]] void invalid(const std::string& message) {
  throw Error(ErrorCode::invalid_argument, message);
}

void require_range(const char* name, std::int64_t value, std::int64_t least, std::int64_t most) {
  if (value >= least && value <= most) return;
  invalid(std::string(name) + " = " + std::to_string(value) + " is out of range: use " +
          std::to_string(least) + " to " + std::to_string(most));
}

/// "A" or "A or B", for a lower and an upper neighbour of what was asked for; 0 stands for none.
std::string either(std::int64_t lower, std::int64_t upper) {
  if (lower == 0 || lower == upper) return std::to_string(upper);
  if (upper == 0) return std::to_string(lower);
  return std::to_string(lower) + " or " + std::to_string(upper);
}

/// The numbers of lanes next to `lanes` that fit: world_size times a divisor of batch_size.
std::string fitting_lanes(const OrderOptions& options) {
  std::int64_t lower = 0;
  std::int64_t upper = 0;
  const auto consider = [&](std::int64_t divisor) {
    const auto lanes = base::checked_multiply(divisor, options.world_size);
    if (!lanes || *lanes > kMaxWord) return;
    if (*lanes <= options.lanes) lower = std::max(lower, *lanes);
    if (*lanes >= options.lanes) upper = upper == 0 ? *lanes : std::min(upper, *lanes);
  };
  for (std::int64_t divisor = 1; divisor <= options.batch_size / divisor; ++divisor) {
    if (options.batch_size % divisor != 0) continue;
    consider(divisor);
    consider(options.batch_size / divisor);
  }
  return either(lower, upper);
}

/// Checks the options and resolves `lanes`.
OrderOptions checked_options(const RowGroups& groups, OrderOptions options, std::int64_t epoch) {
  require_range("batch_size", options.batch_size, 1, kMaxWord);
  require_range("world_size", options.world_size, 1, kMaxWord);
  require_range("rank", options.rank, 0, options.world_size - 1);
  require_range("lanes", options.lanes, 0, kMaxWord);
  require_range("window_groups", options.window_groups, 1,
                std::numeric_limits<std::int64_t>::max());
  require_range("epoch", epoch, 0, std::numeric_limits<std::int64_t>::max());
  if (options.drop_last && options.uneven == Uneven::exact) {
    invalid(
        "drop_last leaves samples out, uneven = exact delivers every one: turn drop_last off, or "
        "use uneven = drop or pad");
  }

  if (options.lanes == 0) options.lanes = options.world_size;
  if (options.lanes % options.world_size != 0) {
    invalid("lanes = " + std::to_string(options.lanes) +
            " is not a multiple of world_size = " + std::to_string(options.world_size) +
            ": lanes = " + fitting_lanes(options) + " would do");
  }
  const std::int64_t lanes_per_rank = options.lanes / options.world_size;
  if (options.batch_size % lanes_per_rank != 0) {
    const std::int64_t lower = options.batch_size / lanes_per_rank * lanes_per_rank;
    const std::int64_t upper = lower + lanes_per_rank;
    invalid("lanes = " + std::to_string(options.lanes) +
            " does not divide the global batch (batch_size " + std::to_string(options.batch_size) +
            " x world_size " + std::to_string(options.world_size) + "): lanes = " +
            fitting_lanes(options) + ", or batch_size = " + either(lower, upper) + " would do");
  }
  if (groups.num_samples() < options.lanes) {
    invalid(std::to_string(groups.num_samples()) + " samples are too few for " +
            std::to_string(options.lanes) + " lanes: use fewer lanes (or ranks), at most " +
            std::to_string(groups.num_samples()));
  }

  const std::int64_t group = groups.max_length();
  if (group > kMaxWindowSamples) {
    invalid("row groups of " + std::to_string(group) + " samples are too long: use at most " +
            std::to_string(kMaxWindowSamples));
  }
  if (options.mode == OrderMode::chunk_shuffled) {
    const std::int64_t most = kMaxWindowSamples / group;
    const std::int64_t used = std::min(options.window_groups, groups.num_groups());
    const std::int64_t lane = base::ceil_divide(groups.num_samples(), options.lanes);
    if (used > most && lane > kMaxWindowSamples) {
      invalid("window_groups = " + std::to_string(options.window_groups) + " row groups of " +
              std::to_string(group) + " samples are too many for one window: use at most " +
              std::to_string(most));
    }
  }
  return options;
}

std::optional<base::KeyedPermutation> make_permutation(const RowGroups& groups,
                                                       const OrderOptions& options,
                                                       std::int64_t epoch) {
  if (options.mode == OrderMode::sequential) return std::nullopt;
  const bool of_rows = options.mode == OrderMode::random;
  const auto purpose = of_rows ? base::StreamPurpose::rows : base::StreamPurpose::row_groups;
  return base::KeyedPermutation(
      static_cast<std::uint64_t>(of_rows ? groups.num_samples() : groups.num_groups()),
      base::stream_key(options.seed, static_cast<std::uint64_t>(epoch), 0, purpose), purpose);
}

/// Samples that lane v has before it: floor(v * N / V).
std::int64_t lane_begin(std::int64_t lane, std::int64_t num_samples, std::int64_t lanes) noexcept {
  const base::Uint128 product =
      static_cast<base::Uint128>(lane) * static_cast<base::Uint128>(num_samples);
  return static_cast<std::int64_t>(product / static_cast<base::Uint128>(lanes));
}

}  // namespace

namespace plan {

SlotStarts::SlotStarts(const RowGroups& groups, const base::KeyedPermutation* permutation)
    : group_samples_(groups.group_samples()) {
  if (groups.is_selection()) {
    starts_.resize(static_cast<std::size_t>(groups.num_groups()) + 1);
    for (std::size_t slot = 0; slot + 1 < starts_.size(); ++slot) {
      const std::uint64_t group = permutation ? (*permutation)(slot) : slot;
      starts_[slot + 1] = starts_[slot] + groups.length(static_cast<std::int64_t>(group));
    }
    return;
  }
  short_slots_.reserve(groups.short_groups().size());
  for (const std::int64_t group : groups.short_groups()) {
    const std::int64_t slot =
        permutation
            ? static_cast<std::int64_t>(permutation->inverse(static_cast<std::uint64_t>(group)))
            : group;
    short_slots_.push_back({slot, 0, group_samples_ - groups.length(group)});
  }
  std::sort(short_slots_.begin(), short_slots_.end(),
            [](const ShortSlot& a, const ShortSlot& b) { return a.slot < b.slot; });
  std::int64_t lacking = 0;
  for (ShortSlot& entry : short_slots_) {
    lacking += entry.lacking;
    entry.lacking = lacking;
    entry.end = (entry.slot + 1) * group_samples_ - lacking;
  }
}

std::int64_t SlotStarts::start(std::int64_t slot) const noexcept {
  if (!starts_.empty()) return starts_[static_cast<std::size_t>(slot)];
  const auto it =
      std::partition_point(short_slots_.begin(), short_slots_.end(),
                           [slot](const ShortSlot& entry) { return entry.slot < slot; });
  return slot * group_samples_ - lacking_before(it);
}

std::int64_t SlotStarts::slot_of(std::int64_t position) const noexcept {
  if (!starts_.empty()) {
    return std::upper_bound(starts_.begin(), starts_.end(), position) - starts_.begin() - 1;
  }
  const auto it =
      std::partition_point(short_slots_.begin(), short_slots_.end(),
                           [position](const ShortSlot& entry) { return entry.end <= position; });
  return (position + lacking_before(it)) / group_samples_;
}

std::int64_t SlotStarts::memory_bytes() const noexcept {
  return static_cast<std::int64_t>(short_slots_.capacity() * sizeof(ShortSlot) +
                                   starts_.capacity() * sizeof(std::int64_t));
}

}  // namespace plan

EpochOrder::Impl::Impl(RowGroups row_groups, OrderOptions order_options, std::int64_t epoch_number)
    : groups(std::move(row_groups)),
      options(checked_options(groups, order_options, epoch_number)),
      epoch(epoch_number),
      lane_batch(options.batch_size / (options.lanes / options.world_size)),
      window_slots(options.mode == OrderMode::sequential
                       ? 1
                       : std::min(options.window_groups, groups.num_groups())),
      permutation(make_permutation(groups, options, epoch)),
      slots(groups, options.mode == OrderMode::chunk_shuffled ? &*permutation : nullptr) {}

plan::Lane EpochOrder::Impl::lane(std::int64_t index) const noexcept {
  const std::int64_t num_samples = groups.num_samples();
  plan::Lane lane{index, lane_begin(index, num_samples, options.lanes),
                  lane_begin(index + 1, num_samples, options.lanes), 0};
  switch (options.uneven) {
    case Uneven::pad:
      lane.delivered = base::ceil_divide(num_samples, options.lanes);
      break;
    case Uneven::drop:
      lane.delivered = num_samples / options.lanes;
      break;
    case Uneven::exact:
      lane.delivered = lane.size();
      break;
  }
  if (options.drop_last) lane.delivered -= lane.delivered % lane_batch;
  return lane;
}

std::int64_t EpochOrder::Impl::first_lane() const noexcept {
  return options.rank * (options.lanes / options.world_size);
}

std::int64_t EpochOrder::Impl::end_lane() const noexcept {
  return first_lane() + options.lanes / options.world_size;
}

std::int64_t EpochOrder::Impl::num_windows(const plan::Lane& lane) const noexcept {
  return window_of(lane, lane.end - 1) + 1;
}

std::int64_t EpochOrder::Impl::window_of(const plan::Lane& lane,
                                         std::int64_t position) const noexcept {
  return (slots.slot_of(position) - slots.slot_of(lane.begin)) / window_slots;
}

plan::WindowSpan EpochOrder::Impl::window_span(const plan::Lane& lane,
                                               std::int64_t window) const noexcept {
  plan::WindowSpan span;
  span.first_slot = slots.slot_of(lane.begin) + window * window_slots;
  span.end_slot = std::min(span.first_slot + window_slots, slots.slot_of(lane.end - 1) + 1);
  span.begin = std::max(slots.start(span.first_slot), lane.begin);
  span.end = std::min(slots.start(span.end_slot), lane.end);
  return span;
}

std::int64_t EpochOrder::Impl::group_in_slot(std::int64_t slot) const noexcept {
  if (options.mode != OrderMode::chunk_shuffled) return slot;
  return static_cast<std::int64_t>((*permutation)(static_cast<std::uint64_t>(slot)));
}

std::int64_t EpochOrder::Impl::row_at(std::int64_t position) const noexcept {
  if (options.mode == OrderMode::random) {
    position = static_cast<std::int64_t>((*permutation)(static_cast<std::uint64_t>(position)));
  }
  const std::int64_t slot = slots.slot_of(position);
  return groups.row(group_in_slot(slot), position - slots.start(slot));
}

base::PhiloxStream EpochOrder::Impl::window_stream(const plan::Lane& lane,
                                                   const plan::WindowSpan& span) const noexcept {
  return base::PhiloxStream(
      base::stream_key(options.seed, static_cast<std::uint64_t>(epoch),
                       static_cast<std::uint32_t>(lane.index), base::StreamPurpose::window),
      static_cast<std::uint64_t>(span.first_slot));
}

EpochOrder::EpochOrder(RowGroups groups, OrderOptions options, std::int64_t epoch)
    : impl_(std::make_unique<const Impl>(std::move(groups), options, epoch)) {}
EpochOrder::EpochOrder(EpochOrder&&) noexcept = default;
EpochOrder& EpochOrder::operator=(EpochOrder&&) noexcept = default;
EpochOrder::~EpochOrder() = default;

const RowGroups& EpochOrder::groups() const noexcept { return impl_->groups; }
const OrderOptions& EpochOrder::options() const noexcept { return impl_->options; }
std::int64_t EpochOrder::epoch() const noexcept { return impl_->epoch; }

std::int64_t EpochOrder::num_steps() const noexcept {
  std::int64_t steps = 0;
  for (std::int64_t v = impl_->first_lane(); v < impl_->end_lane(); ++v) {
    steps = std::max(steps, base::ceil_divide(impl_->lane(v).delivered, impl_->lane_batch));
  }
  return steps;
}

std::int64_t EpochOrder::batch_rows(std::int64_t step) const noexcept {
  std::int64_t rows = 0;
  for (std::int64_t v = impl_->first_lane(); v < impl_->end_lane(); ++v) {
    const std::int64_t left = impl_->lane(v).delivered - step * impl_->lane_batch;
    rows += std::clamp(left, std::int64_t{0}, impl_->lane_batch);
  }
  return rows;
}

std::int64_t EpochOrder::num_delivered() const noexcept {
  std::int64_t samples = 0;
  for (std::int64_t v = impl_->first_lane(); v < impl_->end_lane(); ++v) {
    samples += impl_->lane(v).delivered;
  }
  return samples;
}

std::int64_t EpochOrder::memory_bytes() const noexcept {
  return impl_->slots.memory_bytes() +
         (impl_->permutation ? impl_->permutation->memory_bytes() : 0);
}

// Written straight from the definition, one position after the other, and so a check on the window
// planner.
std::vector<std::int64_t> EpochOrder::batch(std::int64_t step) const {
  if (step < 0 || step >= num_steps()) {
    invalid("step " + std::to_string(step) + " does not exist: rank " +
            std::to_string(options().rank) + " delivers " + std::to_string(num_steps()) +
            " steps an epoch");
  }
  const Impl& impl = *impl_;
  std::vector<std::int64_t> rows;
  rows.reserve(static_cast<std::size_t>(batch_rows(step)));
  for (std::int64_t v = impl.first_lane(); v < impl.end_lane(); ++v) {
    const plan::Lane lane = impl.lane(v);
    const std::int64_t end = std::min((step + 1) * impl.lane_batch, lane.delivered);
    std::int64_t permuted_window = -1;
    plan::WindowSpan span;
    std::vector<std::uint32_t> permuted;
    for (std::int64_t i = step * impl.lane_batch; i < end; ++i) {
      const std::int64_t position = lane.begin + i % lane.size();
      if (impl.options.mode != OrderMode::chunk_shuffled) {
        rows.push_back(impl.row_at(position));
        continue;
      }
      if (const std::int64_t window = impl.window_of(lane, position); window != permuted_window) {
        permuted_window = window;
        span = impl.window_span(lane, window);
        permuted.resize(static_cast<std::size_t>(span.size()));
        std::iota(permuted.begin(), permuted.end(), 0U);
        base::PhiloxStream stream = impl.window_stream(lane, span);
        base::fisher_yates(permuted.size(), stream, [&](std::uint64_t a, std::uint64_t b) {
          std::swap(permuted[a], permuted[b]);
        });
      }
      rows.push_back(
          impl.row_at(span.begin + permuted[static_cast<std::size_t>(position - span.begin)]));
    }
  }
  return rows;
}

}  // namespace chunkio
