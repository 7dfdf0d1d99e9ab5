#include "pipeline/window_reader.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <string>
#include <system_error>
#include <utility>

namespace chunkio::pipeline {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kEpochsRemembered = 8;
// Leaves room for the epochs that are planned ahead.
constexpr std::int64_t kMaxEpoch = std::int64_t{1} << 62;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

WindowReader::WindowReader(RowGroups groups, const WindowReaderOptions& options,
                           std::unique_ptr<ChunkSource> source, ResidentFields fields,
                           std::shared_ptr<Ring> ring)
    : options_(options),
      groups_(std::move(groups)),
      source_(std::move(source)),
      fields_(std::move(fields)),
      ring_(std::move(ring)) {
  const EpochOrder order(groups_, options_.order, 0);
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

  try {
    for (std::int64_t i = 0; i < options_.num_threads; ++i) {
      threads_.emplace_back([this](std::stop_token stop) { work(std::move(stop)); });
    }
  } catch (const std::system_error& error) {
    for (std::jthread& thread : threads_) thread.request_stop();
    { const std::lock_guard lock(ring_->mutex()); }
    ring_->work_available().notify_all();
    threads_.clear();
    throw Error(ErrorCode::out_of_resources, std::string("cannot start a reader thread: ") +
                                                 error.what() +
                                                 "; lower num_threads or raise the process limit");
  }
}

WindowReader::~WindowReader() {
  {
    // Under the mutex, so that no worker can miss it between its check and its wait.
    const std::lock_guard lock(ring_->mutex());
    cancel_.request_stop();
    for (std::jthread& thread : threads_) thread.request_stop();
  }
  ring_->work_available().notify_all();
  threads_.clear();  // joins
  // Leases may outlive us; slots that were never handed out have no other owner.
}

void WindowReader::start(std::int64_t epoch) {
  if (epoch < 0 || epoch > kMaxEpoch) {
    throw Error(ErrorCode::invalid_argument,
                "epoch must be between 0 and 2^62, got " + std::to_string(epoch));
  }
  std::unique_lock lock(ring_->mutex());
  rethrow_error();
  const bool at_its_start = started_ && num_steps_ > 0 &&
                            start_epoch_ + next_batch_ / num_steps_ == epoch &&
                            next_batch_ % num_steps_ == 0 && epoch < epoch_limit_;
  if (!at_its_start) reset(lock, epoch);
  consumer_epoch_ = epoch;
}

void WindowReader::reset(std::unique_lock<std::mutex>& lock, std::int64_t epoch) {
  started_ = false;  // no worker takes up anything new
  cancel_.request_stop();
  quiet_.wait(lock, [this] { return num_working_ == 0; });
  rethrow_error();

  // What was prefetched and never delivered counts for nothing; an epoch begun again counts anew.
  epochs_.erase(epochs_.upper_bound(consumer_epoch_), epochs_.end());
  epochs_.erase(epoch);
  for (const Pending& pending : pending_) ring_->put_back(pending.slot);
  pending_.clear();
  for (auto& task : open_) spare_.push_back(std::move(task));
  open_.clear();
  if (planned_) spare_.push_back(std::move(planned_));
  planned_.reset();

  cancel_ = std::stop_source();
  start_epoch_ = epoch;
  next_batch_ = 0;
  epoch_limit_ = std::numeric_limits<std::int64_t>::max();
  if (options_.num_epochs) epoch_limit_ = std::max(*options_.num_epochs, epoch + 1);
  for (LaneCursor& cursor : cursors_) cursor = {.epoch = epoch, .window = 0};
  orders_.clear();
  all_planned_ = num_steps_ == 0;
  started_ = true;
  ring_->work_available().notify_all();
}

std::shared_ptr<const internal::BatchSlot> WindowReader::next() {
  std::unique_lock lock(ring_->mutex());
  rethrow_error();
  if (!started_) {
    throw Error(ErrorCode::invalid_argument, "start_epoch() comes before next()");
  }
  if (num_steps_ == 0 || start_epoch_ + next_batch_ / num_steps_ != consumer_epoch_) return nullptr;
  if (ring_->num_leased() >= options_.max_held) {
    throw Error(ErrorCode::out_of_resources,
                "all " + std::to_string(options_.max_held) +
                    " batches that may be held at once are held; release one before asking for the "
                    "next, or raise max_held");
  }
  const Clock::time_point start = Clock::now();
  batch_ready_.wait(
      lock, [this] { return error_ || (!pending_.empty() && pending_.front().rows_missing == 0); });
  const double stall = seconds_since(start);
  rethrow_error();

  const std::int64_t index = pending_.front().slot;
  auto leased = ring_->lease(index);
  pending_.pop_front();
  ++next_batch_;

  const std::int64_t bytes = leased->rows * static_cast<std::int64_t>(ring_->layout().sample_bytes);
  for (LoaderStats* stats : {&total_, &stats_of(leased->epoch)}) {
    stats->batches += 1;
    stats->images += leased->rows;
    stats->bytes_delivered += bytes;
    stats->stall_seconds += stall;
  }
  return leased;
}

LoaderStats WindowReader::stats() const {
  const std::lock_guard lock(ring_->mutex());
  return total_;
}

LoaderStats WindowReader::epoch_stats(std::int64_t epoch) const {
  const std::lock_guard lock(ring_->mutex());
  const auto found = epochs_.find(epoch);
  return found == epochs_.end() ? LoaderStats{} : found->second;
}

LoaderStats& WindowReader::stats_of(std::int64_t epoch) {
  LoaderStats& stats = epochs_[epoch];
  while (epochs_.size() > kEpochsRemembered && epochs_.begin()->first != epoch) {
    epochs_.erase(epochs_.begin());
  }
  return stats;
}

void WindowReader::rethrow_error() const {
  if (error_) std::rethrow_exception(error_);
}

void WindowReader::fail(std::exception_ptr error) {
  if (!error_) error_ = std::move(error);
  cancel_.request_stop();
  batch_ready_.notify_all();
  ring_->work_available().notify_all();
}

// ---- workers ----

void WindowReader::work(std::stop_token stop) {
  std::vector<RowTarget> targets;
  std::unique_lock lock(ring_->mutex());
  while (!stop.stop_requested()) {
    if (started_ && !error_) {
      open_planned();
      if (!planned_ && !planning_ && !all_planned_) {
        plan_next(lock);
        continue;
      }
      if (Task* task = task_with_visit()) {
        visit(lock, *task, targets);
        continue;
      }
    }
    const Clock::time_point start = Clock::now();
    ring_->work_available().wait(lock);
    if (started_) {
      const double idle = seconds_since(start);
      total_.idle_seconds += idle;
      stats_of(consumer_epoch_).idle_seconds += idle;
    }
  }
}

void WindowReader::plan_next(std::unique_lock<std::mutex>& lock) {
  planning_ = true;
  ++num_working_;
  std::unique_ptr<Task> task;
  if (!spare_.empty()) {
    task = std::move(spare_.back());
    spare_.pop_back();
  }
  lock.unlock();

  const Clock::time_point start = Clock::now();
  bool found = false;
  std::exception_ptr error;
  try {
    if (!task) task = std::make_unique<Task>();
    found = plan_window(*task);
  } catch (...) {
    error = std::current_exception();
  }
  const double seconds = seconds_since(start);

  lock.lock();
  planning_ = false;
  if (--num_working_ == 0) quiet_.notify_all();
  if (error) {
    fail(std::move(error));
    return;
  }
  total_.plan_seconds += seconds;
  if (!found) {
    all_planned_ = true;
    spare_.push_back(std::move(task));
    return;
  }
  stats_of(task->epoch).plan_seconds += seconds;
  planned_ = std::move(task);
  // The caller's loop opens it; another thread may then plan on or visit.
  ring_->work_available().notify_all();
}

bool WindowReader::plan_window(Task& task) {
  while (true) {
    // The lane whose next window starts in the earliest batch.
    std::size_t best = cursors_.size();
    std::int64_t best_batch = std::numeric_limits<std::int64_t>::max();
    plan::WindowExtent best_extent;
    for (std::size_t i = 0; i < cursors_.size(); ++i) {
      LaneCursor& cursor = cursors_[i];
      const std::int64_t lane = first_lane_ + static_cast<std::int64_t>(i);
      plan::WindowExtent extent;
      while (cursor.epoch < epoch_limit_) {
        const EpochOrder& order = order_of(cursor.epoch);
        if (cursor.window == plan::num_windows(order, lane)) {
          cursor = {.epoch = cursor.epoch + 1, .window = 0};
          continue;
        }
        extent = plan::window_extent(order, lane, cursor.window);
        if (extent.end_index > extent.first_index) break;
        ++cursor.window;  // nothing of it is delivered
      }
      if (cursor.epoch >= epoch_limit_) continue;
      const std::int64_t batch =
          (cursor.epoch - start_epoch_) * num_steps_ + extent.first_index / lane_batch_;
      if (batch < best_batch) {
        best = i;
        best_batch = batch;
        best_extent = extent;
      }
    }
    if (best == cursors_.size()) return false;

    LaneCursor& cursor = cursors_[best];
    const std::int64_t lane = first_lane_ + static_cast<std::int64_t>(best);
    plan::plan_window(order_of(cursor.epoch), lane, cursor.window, task.plan);
    task.epoch = cursor.epoch;
    task.first_batch = best_batch;
    task.last_batch =
        (cursor.epoch - start_epoch_) * num_steps_ + (best_extent.end_index - 1) / lane_batch_;
    task.next_visit = 0;
    task.visits_left = task.plan.visits.size();
    ++cursor.window;
    std::int64_t oldest = cursor.epoch;
    for (const LaneCursor& other : cursors_) oldest = std::min(oldest, other.epoch);
    orders_.erase(orders_.begin(), orders_.lower_bound(oldest));
    return true;
  }
}

const EpochOrder& WindowReader::order_of(std::int64_t epoch) {
  const auto found = orders_.find(epoch);
  if (found != orders_.end()) return found->second;
  return orders_.emplace(epoch, EpochOrder(groups_, options_.order, epoch)).first->second;
}

void WindowReader::open_planned() {
  if (!planned_) return;
  const std::int64_t end_batch = next_batch_ + static_cast<std::int64_t>(pending_.size());
  const std::int64_t needed = planned_->last_batch + 1 - end_batch;
  if (needed > ring_->num_free()) return;
  for (std::int64_t batch = end_batch; batch < end_batch + needed; ++batch) {
    const std::int64_t index = ring_->take_free();
    internal::BatchSlot& slot = ring_->slot(index);
    slot.epoch = start_epoch_ + batch / num_steps_;
    slot.step = batch % num_steps_;
    slot.rows = slot.step == num_steps_ - 1 ? batch_rows_[1] : batch_rows_[0];
    pending_.push_back({.slot = index, .rows_missing = slot.rows});
  }
  planned_->slots.clear();
  for (std::int64_t batch = planned_->first_batch; batch <= planned_->last_batch; ++batch) {
    planned_->slots.push_back(
        &ring_->slot(pending_[static_cast<std::size_t>(batch - next_batch_)].slot));
  }
  open_.push_back(std::move(planned_));
  ring_->work_available().notify_all();
}

WindowReader::Task* WindowReader::task_with_visit() {
  for (const auto& task : open_) {
    if (task->next_visit < task->plan.visits.size()) return task.get();
  }
  return nullptr;
}

void WindowReader::visit(std::unique_lock<std::mutex>& lock, Task& task,
                         std::vector<RowTarget>& targets) {
  const plan::GroupVisit& group_visit = task.plan.visits[task.next_visit++];
  const std::stop_token stop = cancel_.get_token();
  ++num_working_;
  lock.unlock();

  const Clock::time_point start = Clock::now();
  PlaceCost cost;
  std::exception_ptr error;
  try {
    fill_targets(task, group_visit, targets);
    const RowGroup group{.first_row = groups_.first_row(group_visit.group),
                         .num_rows = groups_.length(group_visit.group)};
    cost = source_->place(group, targets, stop);
  } catch (...) {
    error = std::current_exception();
  }
  const double seconds = seconds_since(start);

  lock.lock();
  if (--num_working_ == 0) quiet_.notify_all();
  if (stop.stop_requested())
    return;  // abandoned: by reset(), by an error elsewhere, or by the destructor
  if (error) {
    fail(std::move(error));
    return;
  }
  for (LoaderStats* stats : {&total_, &stats_of(task.epoch)}) {
    stats->bytes_read += cost.bytes_read;
    stats->chunk_loads += 1;
    stats->read_seconds += seconds;
  }
  if (--task.visits_left == 0) complete(task);
}

void WindowReader::fill_targets(const Task& task, const plan::GroupVisit& visit,
                                std::vector<RowTarget>& targets) {
  const std::size_t sample_bytes = ring_->layout().sample_bytes;
  const std::vector<RingField>& ring_fields = ring_->layout().fields;
  const std::int64_t first_row = groups_.first_row(visit.group);
  // Delivery indexes relative to the first sample of the window's first batch fit 32 bits
  // (EpochOrder bounds the window), and 32-bit division is several times cheaper than 64-bit.
  const auto lane_batch = static_cast<std::uint32_t>(lane_batch_);
  const auto shift = static_cast<std::uint32_t>(task.plan.first_index % lane_batch_);
  const std::int64_t lane = task.plan.lane - first_lane_;

  targets.clear();
  targets.reserve(visit.count);
  for (std::uint32_t i = visit.first; i < visit.first + visit.count; ++i) {
    const plan::PlannedRow& planned = task.plan.rows[i];
    const std::uint32_t index = planned.index + shift;
    const std::uint32_t batch = index / lane_batch;
    internal::BatchSlot& slot = *task.slots[batch];
    const std::int64_t lane_row = slot.step == num_steps_ - 1
                                      ? last_lane_row_[static_cast<std::size_t>(lane)]
                                      : lane * lane_batch_;
    const auto row = static_cast<std::size_t>(lane_row + index % lane_batch);
    const std::int64_t sample = first_row + planned.row;
    slot.sample_ids[row] = sample;
    for (std::size_t f = 0; f < ring_fields.size(); ++f) {
      const std::size_t bytes = ring_fields[f].row_bytes;
      std::memcpy(slot.fields[f] + row * bytes,
                  fields_[f].data() + static_cast<std::size_t>(sample) * bytes, bytes);
    }
    targets.push_back({.row = planned.row, .target = slot.images + row * sample_bytes});
  }
}

void WindowReader::complete(Task& task) {
  const std::int64_t epoch_batch = (task.epoch - start_epoch_) * num_steps_;
  for (std::int64_t batch = task.first_batch; batch <= task.last_batch; ++batch) {
    const std::int64_t begin = (batch - epoch_batch) * lane_batch_;
    const std::int64_t rows =
        std::min(begin + lane_batch_, task.plan.end_index) - std::max(begin, task.plan.first_index);
    pending_[static_cast<std::size_t>(batch - next_batch_)].rows_missing -= rows;
  }
  if (pending_.front().rows_missing == 0) batch_ready_.notify_all();
  const auto found = std::find_if(open_.begin(), open_.end(),
                                  [&](const auto& open) { return open.get() == &task; });
  spare_.push_back(std::move(*found));
  open_.erase(found);
}

}  // namespace chunkio::pipeline
