#include "read/window_scheduler.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/checked_math.hpp"

namespace chunkio::read {
namespace {

/// Whether the last read of a plan fetches a group again that an earlier one fetched: the sample
/// that pads a short lane.
bool ends_with_repeat(const plan::WindowPlan& plan) {
  if (plan.reads.empty()) return false;
  return std::any_of(plan.reads.begin(), plan.reads.end() - 1,
                     [&](const auto& read) { return read.group == plan.reads.back().group; });
}

}  // namespace

WindowScheduler::WindowScheduler(const RowGroups& groups, const OrderOptions& order_options,
                                 std::optional<std::int64_t> num_epochs,
                                 std::int64_t prefetch_bytes, Ring& ring)
    : groups_(groups),
      order_options_(order_options),
      num_epochs_(num_epochs),
      prefetch_bytes_(prefetch_bytes),
      ring_(ring) {
  const EpochOrder order(groups_, order_options_, 0);
  num_steps_ = order.num_steps();
  lane_batch_ = plan::lane_batch(order);
  const std::int64_t num_lanes = order.options().lanes / order.options().world_size;
  first_lane_ = order.options().rank * num_lanes;
  if (num_steps_ > 0) {
    batch_rows_ = {order.batch_rows(0), order.batch_rows(num_steps_ - 1)};
    // Only the last batch can be short, so only there do lanes not lie lane_batch_ rows apart.
    std::int64_t row = 0;
    for (std::int64_t lane = 0; lane < num_lanes; ++lane) {
      last_lane_row_.push_back(row);
      const std::int64_t before = (num_steps_ - 1) * lane_batch_;
      row += std::max<std::int64_t>(plan::lane_delivered(order, first_lane_ + lane) - before, 0);
    }
  }
  cursors_.resize(static_cast<std::size_t>(num_lanes));
}

std::int64_t WindowScheduler::footprint(const EpochOrder& order, std::int64_t num_slots,
                                        std::size_t num_arrays) {
  const RowGroups& groups = order.groups();
  const OrderOptions& resolved = order.options();
  const std::int64_t num_steps = std::max<std::int64_t>(order.num_steps(), 1);
  const std::int64_t num_lanes = resolved.lanes / resolved.world_size;
  const std::int64_t lane_batch = plan::lane_batch(order);
  const std::int64_t window = plan::max_window_samples(order, 1);

  // Windows in flight: as many as fit the ring and one that is planned. With a selection a group
  // may have a single sample; and each lane and epoch may begin and end with a short window.
  const std::int64_t rows = num_slots * std::max<std::int64_t>(order.batch_rows(0), 1) + window;
  const bool uneven = groups.is_selection() && resolved.mode != OrderMode::random;
  const std::int64_t groups_a_window =
      resolved.mode == OrderMode::chunk_shuffled ? resolved.window_groups : 1;
  const std::int64_t least = std::clamp<std::int64_t>(uneven ? groups_a_window : window, 1,
                                                      std::max<std::int64_t>(window, 1));
  const std::int64_t windows =
      std::min(rows, rows / least + 2 * num_lanes * (num_slots / num_steps + 3));
  const auto whole_windows =
      base::checked_multiply(windows, std::min(groups_a_window, groups.num_groups()) + 1);
  const bool random = resolved.mode == OrderMode::random;
  const std::int64_t reads = random || !whole_windows ? rows : std::min(rows, *whole_windows);
  const std::int64_t batches = std::min(rows, rows / lane_batch + 2 * windows);
  const auto bytes_of = [](std::int64_t count, std::size_t size) {
    return count * static_cast<std::int64_t>(size);
  };
  // Vectors may have twice the room, or that of a larger window before.
  return bytes_of(windows, sizeof(WindowTask) + 8 * sizeof(void*)) +
         bytes_of(4 * rows, sizeof(plan::PlannedRow)) +
         bytes_of(2 * reads, sizeof(plan::GroupRead)) +
         bytes_of(2 * batches, (1 + num_arrays) * sizeof(void*)) +
         bytes_of(num_slots, sizeof(Pending));
}

RowGroup WindowScheduler::row_group(std::int64_t group) const noexcept {
  const RowRange extent = groups_.extent(group);
  return {.first_row = extent.begin, .num_rows = extent.end - extent.begin};
}

RowRange WindowScheduler::wanted_rows(const WindowTask& task,
                                      const plan::GroupRead& read) const noexcept {
  const plan::PlannedRow& first = task.plan.rows[read.first];
  const plan::PlannedRow& last = task.plan.rows[read.first + read.count - 1];
  return {groups_.row(read.group, first.row), groups_.row(read.group, last.row) + 1};
}

std::int64_t WindowScheduler::leading_bytes(const RowGroup& group) const noexcept {
  const RingLayout& layout = ring_.layout();
  const std::int64_t row_bytes = layout.sparse
                                     ? layout.sparse->mean_row_bytes
                                     : static_cast<std::int64_t>(layout.leading.row_bytes);
  return group.num_rows * row_bytes;
}

// ---- the consumer's side ----

void WindowScheduler::reset(std::int64_t epoch, std::int64_t step) {
  drop_prefetched();
  for (const Pending& pending : pending_) ring_.put_back(pending.slot);
  pending_.clear();
  for (auto& task : open_) keep_spare(std::move(task));
  open_.clear();
  if (planned_) keep_spare(std::move(planned_));
  planned_.reset();
  ahead_bytes_ = 0;

  start_epoch_ = epoch;
  next_batch_ = step;
  epoch_limit_ = std::numeric_limits<std::int64_t>::max();
  if (num_epochs_) epoch_limit_ = std::max(*num_epochs_, epoch + 1);
  for (LaneCursor& cursor : cursors_) {
    cursor = {.epoch = epoch, .from_index = step * lane_batch_};
  }
  orders_.clear();
  all_planned_ = num_steps_ == 0;
}

bool WindowScheduler::stands_at(std::int64_t epoch, std::int64_t step) const {
  if (num_steps_ == 0) return false;
  const bool at_end = step == num_steps_;
  // The end of an epoch is the start of the next, of which maybe nothing was planned.
  return next_epoch() == epoch + (at_end ? 1 : 0) &&
         next_batch_ % num_steps_ == (at_end ? 0 : step) && (at_end || epoch < epoch_limit_);
}

std::int64_t WindowScheduler::steps_taken(std::int64_t epoch) const noexcept {
  return std::min(next_batch_ - (epoch - start_epoch_) * num_steps_, num_steps_);
}

void WindowScheduler::take_next() noexcept {
  pending_.pop_front();
  ++next_batch_;
}

// ---- planning ----

std::unique_ptr<WindowTask> WindowScheduler::begin_plan() noexcept {
  planning_ = true;
  if (spare_.empty()) return nullptr;
  std::unique_ptr<WindowTask> task = std::move(spare_.back());
  spare_.pop_back();
  return task;
}

void WindowScheduler::end_plan(std::unique_ptr<WindowTask> task, bool found) {
  planning_ = false;
  if (found) {
    planned_ = std::move(task);
  } else {
    all_planned_ = true;
    keep_spare(std::move(task));
  }
}

bool WindowScheduler::plan_window(WindowTask& task) {
  // The lane whose next window starts in the earliest batch.
  std::size_t best = cursors_.size();
  std::int64_t best_batch = std::numeric_limits<std::int64_t>::max();
  plan::WindowExtent best_extent;
  for (std::size_t i = 0; i < cursors_.size(); ++i) {
    LaneCursor& cursor = cursors_[i];
    const auto extent = next_window(cursor, first_lane_ + static_cast<std::int64_t>(i));
    if (!extent) continue;
    const std::int64_t batch =
        (cursor.epoch - start_epoch_) * num_steps_ + extent->first_index / lane_batch_;
    if (batch < best_batch) {
      best = i;
      best_batch = batch;
      best_extent = *extent;
    }
  }
  if (best == cursors_.size()) return false;

  LaneCursor& cursor = cursors_[best];
  plan::plan_window(order_of(cursor.epoch), first_lane_ + static_cast<std::int64_t>(best),
                    *cursor.window, task.plan);
  if (task.plan.first_index < cursor.from_index) plan::drop_before(task.plan, cursor.from_index);
  task.epoch = cursor.epoch;
  task.first_batch = best_batch;
  task.last_batch =
      (cursor.epoch - start_epoch_) * num_steps_ + (best_extent.end_index - 1) / lane_batch_;
  task.next_read = 0;
  task.reads_left = task.plan.reads.size();
  task.next_prefetch = task.prefetched = 0;
  task.ahead.clear();
  // In random order every group read wants a few rows of a group that comes again and again.
  const bool prefetches = order_options_.mode != OrderMode::random;
  task.prefetch_end =
      prefetches ? task.plan.reads.size() - (ends_with_repeat(task.plan) ? 1 : 0) : 0;
  ++*cursor.window;
  std::int64_t oldest = cursor.epoch;
  for (const LaneCursor& other : cursors_) oldest = std::min(oldest, other.epoch);
  orders_.erase(orders_.begin(), orders_.lower_bound(oldest));
  return true;
}

std::optional<plan::WindowExtent> WindowScheduler::next_window(LaneCursor& cursor,
                                                               std::int64_t lane) {
  while (cursor.epoch < epoch_limit_) {
    const EpochOrder& order = order_of(cursor.epoch);
    const bool exhausted = cursor.from_index >= plan::lane_delivered(order, lane);
    if (!exhausted && !cursor.window) {
      cursor.window = plan::window_of(order, lane, cursor.from_index);
    }
    if (exhausted || *cursor.window == plan::num_windows(order, lane)) {
      cursor = {.epoch = cursor.epoch + 1};
      continue;
    }
    plan::WindowExtent extent = plan::window_extent(order, lane, *cursor.window);
    extent.first_index = std::max(extent.first_index, cursor.from_index);
    if (extent.end_index > extent.first_index) return extent;
    ++*cursor.window;  // nothing of it is delivered
  }
  return std::nullopt;
}

const EpochOrder& WindowScheduler::order_of(std::int64_t epoch) {
  const auto found = orders_.find(epoch);
  if (found != orders_.end()) return found->second;
  return orders_.emplace(epoch, EpochOrder(groups_, order_options_, epoch)).first->second;
}

// ---- slots ----

std::int64_t WindowScheduler::slots_needed() const noexcept {
  const std::int64_t end_batch = next_batch_ + static_cast<std::int64_t>(pending_.size());
  return planned_->last_batch + 1 - end_batch;
}

std::optional<std::int64_t> WindowScheduler::take_untouched_slot() {
  if (!planned_) return std::nullopt;
  const std::int64_t needed = slots_needed();
  if (needed > ring_.num_free() || ring_.next_are_touched(needed)) return std::nullopt;
  return ring_.take_untouched();
}

bool WindowScheduler::open_planned(const SlotFiller& filler) {
  if (!planned_) return false;
  const std::int64_t end_batch = next_batch_ + static_cast<std::int64_t>(pending_.size());
  const std::int64_t needed = slots_needed();
  if (needed > ring_.num_free() || !ring_.next_are_touched(needed)) return false;
  for (std::int64_t batch = end_batch; batch < end_batch + needed; ++batch) {
    const std::int64_t index = ring_.take_free();
    internal::BatchSlot& slot = ring_.slot(index);
    slot.epoch = start_epoch_ + batch / num_steps_;
    slot.step = batch % num_steps_;
    slot.rows = slot.step == num_steps_ - 1 ? batch_rows_[1] : batch_rows_[0];
    pending_.push_back({.slot = index, .rows_missing = slot.rows});
  }
  point_at_slots(*planned_, filler);
  open_.push_back(std::move(planned_));
  return true;
}

void WindowScheduler::point_at_slots(WindowTask& task, const SlotFiller& filler) {
  const std::int64_t lane = task.plan.lane - first_lane_;
  const auto num_batches = static_cast<std::size_t>(task.last_batch - task.first_batch + 1);
  filler.resize(task.rows, num_batches);
  for (std::size_t batch = 0; batch < num_batches; ++batch) {
    const auto pending = static_cast<std::size_t>(task.first_batch - next_batch_) + batch;
    const internal::BatchSlot& slot = ring_.slot(pending_[pending].slot);
    const std::int64_t row = slot.step == num_steps_ - 1
                                 ? last_lane_row_[static_cast<std::size_t>(lane)]
                                 : lane * lane_batch_;
    filler.point_at(task.rows, batch, slot, static_cast<std::size_t>(row));
  }
}

void WindowScheduler::keep_spare(std::unique_ptr<WindowTask> task) {
  // More than these two a lane are windows of a few rows, which cost little to make anew.
  if (spare_.size() < 2 * cursors_.size()) spare_.push_back(std::move(task));
}

// ---- group reads ----

std::size_t WindowScheduler::take_prefetches(std::span<Prefetch> room) {
  if (prefetching_) return 0;
  std::size_t taken = 0;
  const auto take = [&](WindowTask& task) {
    while (task.next_prefetch < task.prefetch_end && ahead_bytes_ < prefetch_bytes_ &&
           taken < room.size()) {
      const std::size_t number = task.next_prefetch++;
      const plan::GroupRead& read = task.plan.reads[number];
      const RowGroup group = row_group(read.group);
      // Whatever is wanted of it: a filtered chunk is read whole.
      ahead_bytes_ += leading_bytes(group);
      room[taken++] = {&task, number, group, wanted_rows(task, read)};
    }
  };
  for (const auto& task : open_) take(*task);
  if (planned_) take(*planned_);
  prefetching_ = taken > 0;
  return taken;
}

void WindowScheduler::drop_prefetched() noexcept {
  for (const auto& task : open_) {
    if (task) task->ahead.clear();  // null: memory ran out when it was put away
  }
  if (planned_) planned_->ahead.clear();
}

void WindowScheduler::end_prefetches(std::span<Prefetch> taken) {
  prefetching_ = false;
  for (Prefetch& prefetch : taken) {
    prefetch.task->prefetched = prefetch.read + 1;
    if (prefetch.result.empty()) continue;
    prefetch.task->ahead.emplace(prefetch.read, std::move(prefetch.result));
  }
}

WindowTask* WindowScheduler::task_to_read() noexcept {
  for (const auto& task : open_) {
    if (task->next_read == task->plan.reads.size()) continue;
    // It is being prefetched, or comes next.
    const bool waits =
        prefetching_ && task->next_read >= task->prefetched && task->next_read < task->prefetch_end;
    if (!waits) return task.get();
  }
  return nullptr;
}

WindowScheduler::NextRead WindowScheduler::take_read(WindowTask& task) {
  const std::size_t number = task.next_read++;
  const plan::GroupRead& read = task.plan.reads[number];
  RowGroup group = row_group(read.group);
  group.epoch = task.epoch;
  if (number < task.next_prefetch) {
    ahead_bytes_ -= leading_bytes(group);
  } else {
    task.next_prefetch = task.prefetched = number + 1;
  }
  const auto ahead = task.ahead.extract(number);
  return {read, group, ahead ? std::move(ahead.mapped()) : Prefetched{}};
}

bool WindowScheduler::finish_read(WindowTask& task) {
  if (--task.reads_left > 0) return false;
  close(task);
  return true;
}

void WindowScheduler::close(WindowTask& task) {
  const std::int64_t epoch_batch = (task.epoch - start_epoch_) * num_steps_;
  for (std::int64_t batch = task.first_batch; batch <= task.last_batch; ++batch) {
    const std::int64_t begin = (batch - epoch_batch) * lane_batch_;
    const std::int64_t rows =
        std::min(begin + lane_batch_, task.plan.end_index) - std::max(begin, task.plan.first_index);
    pending_[static_cast<std::size_t>(batch - next_batch_)].rows_missing -= rows;
  }
  const auto found = std::find_if(open_.begin(), open_.end(),
                                  [&](const auto& open) { return open.get() == &task; });
  keep_spare(std::move(*found));
  open_.erase(found);
}

}  // namespace chunkio::read
