#include "plan/window_plan.hpp"

#include <algorithm>
#include <utility>

#include "base/access.hpp"
#include "base/checked_math.hpp"
#include "plan/epoch_order_impl.hpp"

namespace chunkio::plan {
namespace {

/// Turns rows[0 .. n) into the inverse of the window's permutation: afterwards the sample at
/// position span.begin + p is delivered at rows[p].index.
///
/// The permutation itself is built in the `row` members, which are written only later, so that a
/// window needs no memory beside its plan.
void permute_window(const EpochOrder::Impl& impl, const Lane& lane, const WindowSpan& span,
                    std::vector<PlannedRow>& rows) {
  const auto n = static_cast<std::uint32_t>(span.size());
  rows.resize(n);
  if (impl.options.mode == OrderMode::sequential) {
    for (std::uint32_t p = 0; p < n; ++p) rows[p].index = p;
    return;
  }
  for (std::uint32_t p = 0; p < n; ++p) rows[p].row = p;
  base::PhiloxStream stream = impl.window_stream(lane, span);
  PlannedRow* const entries = rows.data();
  base::fisher_yates(n, stream, [entries](std::uint64_t i, std::uint64_t j) {
    std::swap(entries[i].row, entries[j].row);
  });
  for (std::uint32_t i = 0; i < n; ++i) entries[entries[i].row].index = i;
}

/// The position in the sequence that the lane delivers first.
std::int64_t first_delivered(const EpochOrder::Impl& impl, const Lane& lane) {
  const WindowSpan span = impl.window_span(lane, 0);
  std::vector<PlannedRow> rows;
  permute_window(impl, lane, span, rows);
  const auto first = std::find_if(rows.begin(), rows.end(),
                                  [](const PlannedRow& planned) { return planned.index == 0; });
  return span.begin + (first - rows.begin());
}

void plan_slots(const EpochOrder::Impl& impl, const Lane& lane, WindowPlan& plan) {
  const WindowSpan span = impl.window_span(lane, plan.window);
  permute_window(impl, lane, span, plan.rows);

  // Rows beyond what the lane delivers are left out by moving later ones forward, in place.
  const auto delivered =
      static_cast<std::uint32_t>(std::min(plan.end_index, lane.size()) - plan.first_index);
  PlannedRow* const entries = plan.rows.data();
  std::uint32_t kept = 0;
  std::uint32_t p = 0;
  std::int64_t slot_start = impl.slots.start(span.first_slot);
  for (std::int64_t slot = span.first_slot; slot < span.end_slot; ++slot) {
    const std::int64_t group = impl.group_in_slot(slot);
    const std::int64_t slot_end = slot_start + impl.groups.length(group);
    const auto row_begin =
        static_cast<std::uint32_t>(std::max(slot_start, span.begin) - slot_start);
    const auto row_end = static_cast<std::uint32_t>(std::min(slot_end, span.end) - slot_start);
    const std::uint32_t first = kept;
    for (std::uint32_t row = row_begin; row < row_end; ++row) {
      const std::uint32_t index = entries[p++].index;
      if (index < delivered) entries[kept++] = {row, index};
    }
    if (kept > first) plan.reads.push_back({group, first, kept - first});
    slot_start = slot_end;
  }
  plan.rows.resize(kept);

  if (plan.end_index > lane.size()) {
    const std::int64_t position = first_delivered(impl, lane);
    const std::int64_t slot = impl.slots.slot_of(position);
    plan.reads.push_back({impl.group_in_slot(slot), kept, 1});
    plan.rows.push_back({static_cast<std::uint32_t>(position - impl.slots.start(slot)),
                         static_cast<std::uint32_t>(lane.size() - plan.first_index)});
  }
}

void plan_random(const EpochOrder::Impl& impl, const Lane& lane, WindowPlan& plan) {
  std::vector<std::pair<std::int64_t, std::uint32_t>> wanted;  // sample, delivery index
  wanted.reserve(static_cast<std::size_t>(plan.end_index - plan.first_index));
  for (std::int64_t i = plan.first_index; i < plan.end_index; ++i) {
    const auto position = static_cast<std::uint64_t>(lane.begin + i % lane.size());
    wanted.emplace_back(static_cast<std::int64_t>((*impl.permutation)(position)),
                        static_cast<std::uint32_t>(i - plan.first_index));
  }
  std::sort(wanted.begin(), wanted.end());

  std::int64_t group_begin = 0;
  std::int64_t group_end = 0;
  for (const auto& [sample, index] : wanted) {
    if (sample >= group_end) {
      const std::int64_t group = impl.slots.slot_of(sample);
      group_begin = impl.slots.start(group);
      group_end = impl.slots.start(group + 1);
      plan.reads.push_back({group, static_cast<std::uint32_t>(plan.rows.size()), 0});
    }
    plan.rows.push_back({static_cast<std::uint32_t>(sample - group_begin), index});
    ++plan.reads.back().count;
  }
}

}  // namespace

std::int64_t num_windows(const EpochOrder& order, std::int64_t lane) {
  const EpochOrder::Impl& impl = internal::Access::impl(order);
  const Lane geometry = impl.lane(lane);
  if (impl.options.mode == OrderMode::random) {
    return std::max(std::int64_t{1}, base::ceil_divide(geometry.delivered, impl.lane_batch));
  }
  return impl.num_windows(geometry);
}

WindowExtent window_extent(const EpochOrder& order, std::int64_t lane, std::int64_t window) {
  const EpochOrder::Impl& impl = internal::Access::impl(order);
  const Lane geometry = impl.lane(lane);
  if (impl.options.mode == OrderMode::random) {
    return {window * impl.lane_batch, std::min((window + 1) * impl.lane_batch, geometry.delivered)};
  }
  const WindowSpan span = impl.window_span(geometry, window);
  const bool last = span.end == geometry.end;
  return {std::min(span.begin - geometry.begin, geometry.delivered),
          last ? geometry.delivered : std::min(span.end - geometry.begin, geometry.delivered)};
}

void plan_window(const EpochOrder& order, std::int64_t lane, std::int64_t window,
                 WindowPlan& plan) {
  const EpochOrder::Impl& impl = internal::Access::impl(order);
  const WindowExtent extent = window_extent(order, lane, window);
  plan.lane = lane;
  plan.window = window;
  plan.first_index = extent.first_index;
  plan.end_index = extent.end_index;
  plan.reads.clear();
  plan.rows.clear();
  if (extent.first_index == extent.end_index) return;
  if (impl.options.mode == OrderMode::random) {
    plan_random(impl, impl.lane(lane), plan);
  } else {
    plan_slots(impl, impl.lane(lane), plan);
  }
}

std::int64_t window_of(const EpochOrder& order, std::int64_t lane, std::int64_t index) {
  const EpochOrder::Impl& impl = internal::Access::impl(order);
  if (impl.options.mode == OrderMode::random) return index / impl.lane_batch;
  const Lane geometry = impl.lane(lane);
  // The sample that pads a lane comes with the last window.
  return impl.window_of(geometry, geometry.begin + std::min(index, geometry.size() - 1));
}

void drop_before(WindowPlan& plan, std::int64_t index) {
  index = std::clamp(index, plan.first_index, plan.end_index);
  const std::int64_t dropped = index - plan.first_index;
  if (dropped == 0) return;
  std::uint32_t kept = 0;
  std::size_t num_reads = 0;
  for (const GroupRead read : plan.reads) {
    const std::uint32_t first = kept;
    for (std::uint32_t i = read.first; i < read.first + read.count; ++i) {
      const PlannedRow planned = plan.rows[i];
      if (planned.index < dropped) continue;
      plan.rows[kept++] = {planned.row, planned.index - static_cast<std::uint32_t>(dropped)};
    }
    if (kept > first) plan.reads[num_reads++] = {read.group, first, kept - first};
  }
  plan.reads.resize(num_reads);
  plan.rows.resize(kept);
  plan.first_index = index;
}

std::int64_t lane_delivered(const EpochOrder& order, std::int64_t lane) {
  return internal::Access::impl(order).lane(lane).delivered;
}

std::int64_t lane_batch(const EpochOrder& order) {
  return internal::Access::impl(order).lane_batch;
}

std::int64_t max_window_samples(const EpochOrder& order, std::int64_t count) {
  const EpochOrder::Impl& impl = internal::Access::impl(order);
  const OrderOptions& options = impl.options;
  // The last lane is as long as any: N - floor((V - 1) N / V) = ceil(N / V).
  const std::int64_t longest = impl.lane(options.lanes - 1).delivered;
  const bool random = options.mode == OrderMode::random;
  // At most the number of groups times k, which RowGroups keeps within 63 bits.
  const std::int64_t one = random ? impl.lane_batch : impl.window_slots * impl.groups.max_length();
  const auto all = base::checked_multiply(one, count);
  const bool padded = !random && options.uneven == Uneven::pad;
  if (!all || *all >= longest) return longest;
  return std::min(longest, *all + (padded ? 1 : 0));
}

}  // namespace chunkio::plan
