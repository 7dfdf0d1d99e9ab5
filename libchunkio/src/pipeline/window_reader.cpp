#include "pipeline/window_reader.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <system_error>
#include <utility>

namespace chunkio::pipeline {
namespace {

constexpr std::size_t kEpochsRemembered = 8;
// Leaves room for the epochs that are planned ahead.
constexpr std::int64_t kMaxEpoch = std::int64_t{1} << 62;
// Row groups announced before the worker looks for other work.
constexpr std::size_t kAnnouncedAtOnce = 64;

double seconds_between(std::chrono::steady_clock::time_point start,
                       std::chrono::steady_clock::time_point end) {
  return std::chrono::duration<double>(end - start).count();
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return seconds_between(start, std::chrono::steady_clock::now());
}

/// Errors of one place in the file, rather than of memory, of the program or of everything.
bool concerns_stored_bytes(ErrorCode code) {
  return code == ErrorCode::io_failed || code == ErrorCode::corrupt_data ||
         code == ErrorCode::digest_mismatch || code == ErrorCode::hdf5_failed;
}

/// Whether the last visit of a plan fetches a group again that an earlier one fetched: the sample
/// that pads a short lane.
bool ends_with_repeat(const plan::WindowPlan& plan) {
  if (plan.visits.empty()) return false;
  return std::any_of(plan.visits.begin(), plan.visits.end() - 1,
                     [&](const auto& visit) { return visit.group == plan.visits.back().group; });
}

}  // namespace

WindowReader::WindowReader(RowGroups groups, WindowReaderOptions options,
                           std::vector<StreamedArray> arrays, ResidentFields fields,
                           std::shared_ptr<Ring> ring)
    : options_(std::move(options)),
      groups_(std::move(groups)),
      arrays_(std::move(arrays)),
      fields_(std::move(fields)),
      ring_(std::move(ring)) {
  for (std::size_t field = 0; field < fields_.size(); ++field) {
    if (fields_[field].empty()) continue;
    resident_.push_back({.field = field,
                         .row_bytes = ring_->layout().fields[field].row_bytes,
                         .values = fields_[field].data()});
  }
  for (const StreamedArray& array : arrays_) {
    streamed_row_bytes_ += static_cast<std::int64_t>(array.row_bytes);
  }
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

void WindowReader::start(std::int64_t epoch, std::int64_t step) {
  require_own_process();
  if (epoch < 0 || epoch > kMaxEpoch) {
    throw Error(ErrorCode::invalid_argument,
                "epoch must be between 0 and 2^62, got " + std::to_string(epoch));
  }
  if (step < 0 || step > num_steps_) {
    throw Error(ErrorCode::invalid_argument, "step must be between 0 and " +
                                                 std::to_string(num_steps_) + ", got " +
                                                 std::to_string(step));
  }
  std::unique_lock lock(ring_->mutex());
  rethrow_error();
  const bool stays = stands_at(epoch, step);
  if (!stays) reset(lock, epoch, step);
  // Staying in the middle of an epoch, its clock goes on with its other counters.
  if (!stays || epoch != consumer_epoch_ || step == 0) epoch_started_ = Clock::now();
  if (!first_started_) first_started_ = epoch_started_;
  consumer_epoch_ = epoch;
}

bool WindowReader::stands_at(std::int64_t epoch, std::int64_t step) const {
  if (!started_ || num_steps_ == 0) return false;
  const bool at_end = step == num_steps_;
  // The end of an epoch is the start of the next, of which maybe nothing was planned.
  return start_epoch_ + next_batch_ / num_steps_ == epoch + (at_end ? 1 : 0) &&
         next_batch_ % num_steps_ == (at_end ? 0 : step) && (at_end || epoch < epoch_limit_);
}

void WindowReader::reset(std::unique_lock<std::mutex>& lock, std::int64_t epoch,
                         std::int64_t step) {
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
  ahead_bytes_ = 0;

  cancel_ = std::stop_source();
  start_epoch_ = epoch;
  next_batch_ = step;
  epoch_limit_ = std::numeric_limits<std::int64_t>::max();
  if (options_.num_epochs) epoch_limit_ = std::max(*options_.num_epochs, epoch + 1);
  for (LaneCursor& cursor : cursors_) {
    cursor = {.epoch = epoch, .from_index = step * lane_batch_};
  }
  orders_.clear();
  all_planned_ = num_steps_ == 0;
  started_ = true;
  ring_->work_available().notify_all();
}

std::shared_ptr<const internal::BatchSlot> WindowReader::next() {
  require_own_process();
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
  const Clock::time_point end = Clock::now();
  rethrow_error();

  const std::int64_t index = pending_.front().slot;
  auto leased = ring_->lease(index);
  pending_.pop_front();
  ++next_batch_;

  std::int64_t left_out = 0;
  if (options_.on_error == OnError::skip) {
    lock.unlock();  // the lease keeps everybody else off the slot
    left_out = ring_->slot(index).close_gaps();
    lock.lock();
  }
  for (LoaderStats* stats : {&total_, &stats_of(leased->epoch)}) {
    stats->batches += 1;
    stats->images += leased->rows;
    stats->skipped_images += left_out;
    stats->bytes_delivered += leased->rows * streamed_row_bytes_;
    stats->stall_seconds += seconds_between(start, end);
    stats->seconds = seconds_between(stats == &total_ ? *first_started_ : epoch_started_, end);
  }
  return leased;
}

LoaderPosition WindowReader::position() const {
  require_own_process();
  const std::lock_guard lock(ring_->mutex());
  const std::int64_t epoch_batch = (consumer_epoch_ - start_epoch_) * num_steps_;
  return {.epoch = consumer_epoch_, .step = std::min(next_batch_ - epoch_batch, num_steps_)};
}

LoaderStats WindowReader::stats() const {
  require_own_process();
  const std::lock_guard lock(ring_->mutex());
  LoaderStats stats = total_;
  stats.num_threads = options_.num_threads;
  return stats;
}

LoaderStats WindowReader::epoch_stats(std::int64_t epoch) const {
  require_own_process();
  const std::lock_guard lock(ring_->mutex());
  const auto found = epochs_.find(epoch);
  if (found == epochs_.end()) return {};
  LoaderStats stats = found->second;
  stats.num_threads = options_.num_threads;
  return stats;
}

std::vector<SkippedRows> WindowReader::skipped() const {
  require_own_process();
  const std::lock_guard lock(ring_->mutex());
  std::vector<SkippedRows> all;
  for (const auto& [group, reason] : skipped_) {
    const RowGroup rows = row_group(group);
    all.push_back({.first_row = rows.first_row, .num_rows = rows.num_rows, .reason = reason});
  }
  return all;
}

void WindowReader::require_own_process() const {
  if (ring_->in_own_process()) return;
  throw Error(ErrorCode::unsupported,
              "this loader was made before fork(), and its threads stayed in the parent process; "
              "open the dataset and make a loader after fork()");
}

RowGroup WindowReader::row_group(std::int64_t group) const noexcept {
  const RowRange extent = groups_.extent(group);
  return {.first_row = extent.begin, .num_rows = extent.end - extent.begin};
}

std::int64_t WindowReader::picture_bytes(const RowGroup& group) const noexcept {
  return group.num_rows * static_cast<std::int64_t>(ring_->layout().sample_bytes);
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
  try {
    work_until(stop);
  } catch (...) {
    // Memory ran out in the bookkeeping: what was read is caught where it is read.
    const std::lock_guard lock(ring_->mutex());
    fail(std::current_exception());
  }
}

void WindowReader::work_until(const std::stop_token& stop) {
  Scratch scratch;
  std::unique_lock lock(ring_->mutex());
  while (!stop.stop_requested()) {
    if (started_ && !error_) {
      open_planned();
      if (announce_ahead(lock)) continue;
      if (!planned_ && !planning_ && !all_planned_) {
        plan_next(lock);
        continue;
      }
      if (Task* task = task_with_visit()) {
        visit(lock, *task, scratch);
        continue;
      }
    }
    wait_for_work(lock);
  }
}

void WindowReader::wait_for_work(std::unique_lock<std::mutex>& lock) {
  const bool running = started_ && !error_;
  // Everything planned is read, and what comes next has no slots or does not exist: only the
  // consumer can change that. Otherwise another worker plans, or does the last visits.
  const bool for_output = open_.empty() && (planned_ || all_planned_);
  const Clock::time_point start = Clock::now();
  ring_->work_available().wait(lock);
  if (!running || !started_) return;
  const double seconds = seconds_since(start);
  for (LoaderStats* stats : {&total_, &stats_of(consumer_epoch_)}) {
    (for_output ? stats->output_wait_seconds : stats->input_wait_seconds) += seconds;
  }
}

bool WindowReader::announce_ahead(std::unique_lock<std::mutex>& lock) {
  std::array<RowGroup, kAnnouncedAtOnce> ahead;
  std::size_t num_ahead = 0;
  const auto collect = [&](Task& task) {
    while (task.next_announced < task.announced_end && ahead_bytes_ < kReadaheadBytes &&
           num_ahead < ahead.size()) {
      const RowGroup group = row_group(task.plan.visits[task.next_announced++].group);
      ahead_bytes_ += picture_bytes(group);
      ahead[num_ahead++] = group;
    }
  };
  for (const auto& task : open_) collect(*task);
  if (planned_) collect(*planned_);
  if (num_ahead == 0) return false;

  lock.unlock();
  for (const RowGroup& group : std::span(ahead).first(num_ahead)) {
    for (const StreamedArray& array : arrays_) array.source->will_need(group);
  }
  lock.lock();
  return true;
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
  task.next_visit = 0;
  task.visits_left = task.plan.visits.size();
  // In random order every visit wants a few rows of a group that comes again and again.
  const bool announced = options_.order.mode != OrderMode::random;
  task.next_announced = 0;
  task.announced_end =
      announced ? task.plan.visits.size() - (ends_with_repeat(task.plan) ? 1 : 0) : 0;
  ++*cursor.window;
  std::int64_t oldest = cursor.epoch;
  for (const LaneCursor& other : cursors_) oldest = std::min(oldest, other.epoch);
  orders_.erase(orders_.begin(), orders_.lower_bound(oldest));
  return true;
}

std::optional<plan::WindowExtent> WindowReader::next_window(LaneCursor& cursor, std::int64_t lane) {
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

void WindowReader::visit(std::unique_lock<std::mutex>& lock, Task& task, Scratch& scratch) {
  const std::size_t number = task.next_visit++;
  const plan::GroupVisit& group_visit = task.plan.visits[number];
  const RowGroup group = row_group(group_visit.group);
  if (number < task.next_announced) {
    ahead_bytes_ -= picture_bytes(group);
  } else {
    task.next_announced = number + 1;
  }
  const std::stop_token stop = cancel_.get_token();
  ++num_working_;
  lock.unlock();

  const Clock::time_point start = Clock::now();
  PlaceCost cost;
  std::exception_ptr error;
  std::optional<std::string> skip_reason;
  try {
    fill_targets(task, group_visit, scratch);
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
      cost += arrays_[i].source->place(group, scratch.targets[i], stop);
    }
  } catch (...) {
    error = std::current_exception();
    if (options_.on_error == OnError::skip && !stop.stop_requested()) {
      skip_reason = reason_to_skip(error);
      if (skip_reason) leave_out(task, group_visit);
    }
  }
  // What the sources do not count is filling in targets, ids and labels.
  cost.copy_seconds += std::max(
      seconds_since(start) - cost.read_seconds - cost.decode_seconds - cost.copy_seconds, 0.0);

  lock.lock();
  if (--num_working_ == 0) quiet_.notify_all();
  if (stop.stop_requested())
    return;  // abandoned: by reset(), by an error elsewhere, or by the destructor
  if (error && !skip_reason) {
    fail(std::move(error));
    return;
  }
  if (skip_reason) remember_skipped(group_visit.group, std::move(*skip_reason));
  count(cost, task.epoch);
  if (--task.visits_left == 0) complete(task);
}

void WindowReader::count(const PlaceCost& cost, std::int64_t epoch) {
  for (LoaderStats* stats : {&total_, &stats_of(epoch)}) {
    stats->bytes_read += cost.bytes_read;
    stats->chunk_loads += cost.bytes_read > 0 ? 1 : 0;
    stats->read_seconds += cost.read_seconds;
    stats->decode_seconds += cost.decode_seconds;
    stats->copy_seconds += cost.copy_seconds;
  }
}

std::optional<std::string> WindowReader::reason_to_skip(std::exception_ptr& error) const {
  try {
    try {
      std::rethrow_exception(error);
    } catch (const Error& cause) {
      if (!concerns_stored_bytes(cause.code())) return std::nullopt;
      if (options_.check_whole_file) options_.check_whole_file();
      return std::string(cause.what()).substr(0, kMaxReasonBytes);
    }
  } catch (...) {
    error = std::current_exception();
    return std::nullopt;
  }
}

void WindowReader::remember_skipped(std::int64_t group, std::string reason) {
  if (static_cast<std::int64_t>(skipped_.size()) == kMaxSkippedGroups) return;
  skipped_.try_emplace(group, std::move(reason));
}

template <class RowAt>
void WindowReader::for_each_row(const Task& task, const plan::GroupVisit& visit,
                                RowAt row_at) const {
  // Delivery indexes relative to the first sample of the window's first batch fit 32 bits
  // (EpochOrder bounds the window), and 32-bit division is several times cheaper than 64-bit.
  const auto lane_batch = static_cast<std::uint32_t>(lane_batch_);
  const auto shift = static_cast<std::uint32_t>(task.plan.first_index % lane_batch_);
  const std::int64_t lane = task.plan.lane - first_lane_;
  for (std::uint32_t i = visit.first; i < visit.first + visit.count; ++i) {
    const plan::PlannedRow& planned = task.plan.rows[i];
    const std::uint32_t index = planned.index + shift;
    const std::uint32_t batch = index / lane_batch;
    internal::BatchSlot& slot = *task.slots[batch];
    const std::int64_t lane_row = slot.step == num_steps_ - 1
                                      ? last_lane_row_[static_cast<std::size_t>(lane)]
                                      : lane * lane_batch_;
    row_at(planned.row, slot, static_cast<std::size_t>(lane_row + index % lane_batch));
  }
}

void WindowReader::fill_targets(const Task& task, const plan::GroupVisit& visit,
                                Scratch& scratch) const {
  scratch.targets.resize(arrays_.size());
  for (auto& targets : scratch.targets) {
    targets.clear();
    targets.reserve(visit.count);
  }
  const bool selection = groups_.is_selection();
  if (selection) groups_.offsets(visit.group, scratch.offsets);
  const std::int64_t first_row = row_group(visit.group).first_row;

  for_each_row(
      task, visit, [&](std::uint32_t planned_row, internal::BatchSlot& slot, std::size_t row) {
        const std::uint32_t offset = selection ? scratch.offsets[planned_row] : planned_row;
        const std::int64_t sample = first_row + offset;
        slot.sample_ids[row] = sample;
        for (const ResidentField& field : resident_) {
          std::memcpy(slot.fields[field.field] + row * field.row_bytes,
                      field.values + static_cast<std::size_t>(sample) * field.row_bytes,
                      field.row_bytes);
        }
        for (std::size_t i = 0; i < arrays_.size(); ++i) {
          const StreamedArray& array = arrays_[i];
          std::byte* const values = array.field ? slot.fields[*array.field] : slot.images;
          scratch.targets[i].push_back({offset, values + row * array.row_bytes});
        }
      });
}

void WindowReader::leave_out(const Task& task, const plan::GroupVisit& visit) const {
  for_each_row(task, visit, [](std::uint32_t, internal::BatchSlot& slot, std::size_t row) {
    slot.sample_ids[row] = internal::BatchSlot::kLeftOut;
  });
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
  // Who waited for these last visits waits for the consumer from here on, or may go on.
  if (open_.empty()) ring_->work_available().notify_all();
}

}  // namespace chunkio::pipeline
