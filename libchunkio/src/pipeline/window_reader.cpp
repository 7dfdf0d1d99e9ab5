#include "pipeline/window_reader.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <limits>
#include <system_error>
#include <utility>

#include "base/checked_math.hpp"
#include "base/trace.hpp"
#include "pipeline/loader_state.hpp"

namespace chunkio::pipeline {
namespace {

// Row groups announced before the worker looks for other work.
constexpr std::size_t kAnnouncedAtOnce = 64;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
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
                           std::vector<StreamedArray> arrays, KeptFields fields,
                           std::shared_ptr<Ring> ring)
    : options_(std::move(options)),
      groups_(std::move(groups)),
      arrays_(std::move(arrays)),
      fields_(std::move(fields)),
      ring_(std::move(ring)),
      workers_(*ring_) {
  for (std::size_t field = 0; field < fields_.size(); ++field) {
    if (fields_[field].empty()) continue;
    kept_.push_back({.field = field,
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

  workers_.start(options_.num_threads, [this](std::stop_token stop) { work(std::move(stop)); });
}

void WindowReader::Workers::start(std::int64_t count,
                                  const std::function<void(std::stop_token)>& work) {
  try {
    threads_.reserve(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) threads_.emplace_back(work);
  } catch (const std::system_error& error) {
    throw Error(ErrorCode::out_of_resources, std::string("cannot start a reader thread: ") +
                                                 error.what() +
                                                 "; lower num_threads or raise the process limit");
  }
}

void WindowReader::Workers::stop() noexcept {
  {
    // Under the mutex, so that no worker can miss it between its check and its wait.
    const std::lock_guard lock(ring_.mutex());
    for (std::jthread& thread : threads_) thread.request_stop();
  }
  ring_.work_available().notify_all();
  threads_.clear();  // joins
}

std::int64_t WindowReader::footprint(const EpochOrder& order, const WindowReaderOptions& options,
                                     std::int64_t num_slots, std::size_t num_arrays) {
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
  const std::int64_t visits = random || !whole_windows ? rows : std::min(rows, *whole_windows);
  const std::int64_t batches = std::min(rows, rows / lane_batch + 2 * windows);
  const auto bytes_of = [](std::int64_t count, std::size_t size) {
    return count * static_cast<std::int64_t>(size);
  };
  // Vectors may have twice the room, or that of a larger window before.
  const std::int64_t plans = bytes_of(windows, sizeof(Task) + 8 * sizeof(void*)) +
                             bytes_of(4 * rows, sizeof(plan::PlannedRow)) +
                             bytes_of(2 * visits, sizeof(plan::GroupVisit)) +
                             bytes_of(2 * batches, (1 + num_arrays) * sizeof(void*)) +
                             bytes_of(num_slots, sizeof(Pending));

  const std::int64_t scratch = bytes_of(
      options.num_threads * groups.max_length(),
      sizeof(RowPlace) + sizeof(RowTarget) + (groups.is_selection() ? sizeof(std::uint32_t) : 0));
  const std::int64_t epochs =
      ReaderStatistics::kEpochBytes *
      (num_slots / num_steps + 2 + static_cast<std::int64_t>(ReaderStatistics::kEpochsRemembered));
  std::int64_t skipped = 0;
  if (options.on_error == OnError::skip) {
    constexpr std::size_t kNodeBytes = 128;  // of the map, its key, the string and the heap
    skipped =
        bytes_of(std::min(groups.num_groups(), kMaxSkippedGroups), kMaxReasonBytes + kNodeBytes);
  }
  return plans + scratch + epochs + skipped;
}

WindowReader::~WindowReader() {
  cancel_.request_stop();
  workers_.stop();
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
  statistics_.enter(epoch, stays && epoch == consumer_epoch_ && step > 0, Clock::now());
  if (step == num_steps_) statistics_.leave(Clock::now());
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
  for (const StreamedArray& array : arrays_) array.source->forget_announced();

  statistics_.restart(Clock::now());
  for (const Pending& pending : pending_) ring_->put_back(pending.slot);
  pending_.clear();
  for (auto& task : open_) keep_spare(std::move(task));
  open_.clear();
  if (planned_) keep_spare(std::move(planned_));
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
  const base::TraceRange range(base::Stage::hand_over);
  // Before the lock, so that it is given back after it: giving back locks the mutex, too.
  std::shared_ptr<const internal::BatchSlot> leased;
  std::unique_lock lock(ring_->mutex());
  rethrow_error();
  if (!started_) {
    throw Error(ErrorCode::invalid_argument, "start_epoch() comes before next()");
  }
  if (num_steps_ == 0 || start_epoch_ + next_batch_ / num_steps_ != consumer_epoch_) return nullptr;
  const bool all_held = ring_->num_leased() >= options_.max_held;
  if (all_held && options_.when_held == WhenHeld::raise) {
    throw Error(ErrorCode::out_of_resources,
                "all " + std::to_string(options_.max_held) +
                    " batches that may be held at once are held; release one before asking for the "
                    "next, or raise max_held",
                "max_held");
  }
  const Clock::time_point start = Clock::now();
  wait_for_batch(lock);
  const Clock::time_point end = Clock::now();
  rethrow_error();
  // Before anything changes: there may be no memory.
  const std::shared_ptr<OwnBatch> own = all_held ? ring_->make_own() : nullptr;

  const std::int64_t index = pending_.front().slot;
  leased = ring_->lease(index);
  pending_.pop_front();
  ++next_batch_;

  std::int64_t left_out = 0;
  if (own || options_.on_error == OnError::skip) {
    lock.unlock();  // the lease keeps everybody else off the slot
    if (options_.on_error == OnError::skip) left_out = ring_->slot(index).close_gaps();
    if (own) {
      own->fill(*leased);
      leased = {own, &own->slot()};
    }
    lock.lock();
  }
  statistics_.add_batch({.images = leased->rows,
                         .left_out = left_out,
                         .bytes = leased->rows * streamed_row_bytes_,
                         .copied = own != nullptr},
                        start, end);
  if (leased->step == num_steps_ - 1) statistics_.leave(Clock::now());
  return leased;
}

void WindowReader::wait_for_batch(std::unique_lock<std::mutex>& lock) {
  const auto is_ready = [this] {
    return error_ || (!pending_.empty() && pending_.front().rows_missing == 0);
  };
  if (is_ready()) return;
  const base::TraceRange stall(base::Stage::wait_for_batch);
  if (!options_.on_wait) {
    batch_ready_.wait(lock, is_ready);
    return;
  }
  // Half of what a person who presses Ctrl-C takes for at once.
  constexpr std::chrono::milliseconds kInterval(50);
  while (!batch_ready_.wait_for(lock, kInterval, is_ready)) {
    lock.unlock();
    options_.on_wait();
    lock.lock();
  }
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
  LoaderStats stats = statistics_.total();
  stats.num_threads = options_.num_threads;
  return stats;
}

LoaderStats WindowReader::epoch_stats(std::int64_t epoch) const {
  require_own_process();
  const std::lock_guard lock(ring_->mutex());
  LoaderStats stats = statistics_.epoch(epoch);
  stats.num_threads = options_.num_threads;
  return stats;
}

std::vector<SkippedRows> WindowReader::skipped() const {
  require_own_process();
  const std::lock_guard lock(ring_->mutex());
  std::vector<SkippedRows> all;
  for (const auto& [group, reason] : skipped_) {
    const RowGroup rows = row_group(group);
    all.push_back({.first_row = rows.first_row,
                   .num_rows = rows.num_rows,
                   .num_selected = groups_.length(group),
                   .reason = reason});
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

RowRange WindowReader::wanted_rows(const Task& task, const plan::GroupVisit& visit) const noexcept {
  const plan::PlannedRow& first = task.plan.rows[visit.first];
  const plan::PlannedRow& last = task.plan.rows[visit.first + visit.count - 1];
  return {groups_.row(visit.group, first.row), groups_.row(visit.group, last.row) + 1};
}

std::int64_t WindowReader::picture_bytes(const RowGroup& group) const noexcept {
  return group.num_rows * static_cast<std::int64_t>(ring_->layout().sample_bytes);
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
  base::name_this_thread("chunkio reader");
  std::unique_lock lock(ring_->mutex(), std::defer_lock);
  try {
    work_until(stop, lock);
  } catch (...) {
    // Memory ran out in the bookkeeping: what was read is caught where it is read. The mutex is
    // still held if it was, so that nobody meets what was left half done.
    if (!lock.owns_lock()) lock.lock();
    fail(std::current_exception());
  }
}

void WindowReader::work_until(const std::stop_token& stop, std::unique_lock<std::mutex>& lock) {
  Scratch scratch;
  const auto max_rows = static_cast<std::size_t>(groups_.max_length());
  scratch.places.reserve(max_rows);
  scratch.targets.reserve(max_rows);
  if (groups_.is_selection()) scratch.offsets.reserve(max_rows);
  lock.lock();
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
      // Last: the first batch does not wait for slots of the second window.
      if (touch_slot(lock)) continue;
    }
    wait_for_work(lock);
  }
}

void WindowReader::wait_for_work(std::unique_lock<std::mutex>& lock) {
  // Before the first start nothing is waited for, and after an error everything is over.
  if (!started_ || error_) {
    ring_->work_available().wait(lock);
    return;
  }
  // Everything planned is read, and what comes next has no slots or does not exist: only the
  // consumer can change that. Otherwise another worker plans, or does the last visits.
  const bool for_output = open_.empty() && (planned_ || all_planned_);
  const base::TraceRange range(for_output ? base::Stage::wait_for_buffer
                                          : base::Stage::wait_for_input);
  const auto what =
      for_output ? ReaderStatistics::WaitFor::output : ReaderStatistics::WaitFor::input;
  statistics_.begin_wait(what, Clock::now());
  ring_->work_available().wait(lock);
  statistics_.end_wait(what, Clock::now());
}

bool WindowReader::announce_ahead(std::unique_lock<std::mutex>& lock) {
  struct Announced {
    RowGroup group;
    RowRange wanted;
  };
  std::array<Announced, kAnnouncedAtOnce> ahead;
  std::size_t num_ahead = 0;
  const auto collect = [&](Task& task) {
    while (task.next_announced < task.announced_end && ahead_bytes_ < kReadaheadBytes &&
           num_ahead < ahead.size()) {
      const plan::GroupVisit& visit = task.plan.visits[task.next_announced++];
      const RowGroup group = row_group(visit.group);
      // Whatever is wanted of it: a filtered chunk is read whole.
      ahead_bytes_ += picture_bytes(group);
      ahead[num_ahead++] = {group, wanted_rows(task, visit)};
    }
  };
  for (const auto& task : open_) collect(*task);
  if (planned_) collect(*planned_);
  if (num_ahead == 0) return false;

  ++num_working_;
  lock.unlock();
  {
    const base::TraceRange range(base::Stage::announce);
    for (const auto& [group, wanted] : std::span(ahead).first(num_ahead)) {
      for (const StreamedArray& array : arrays_) array.source->will_need(group, wanted);
    }
  }
  lock.lock();
  if (--num_working_ == 0) quiet_.notify_all();
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
    const base::TraceRange range(base::Stage::plan);
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
  if (!found) {
    all_planned_ = true;
    keep_spare(std::move(task));
    return;
  }
  statistics_.add_plan(task->epoch, seconds);
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

std::int64_t WindowReader::slots_needed() const noexcept {
  const std::int64_t end_batch = next_batch_ + static_cast<std::int64_t>(pending_.size());
  return planned_->last_batch + 1 - end_batch;
}

bool WindowReader::touch_slot(std::unique_lock<std::mutex>& lock) {
  if (!planned_) return false;
  const std::int64_t needed = slots_needed();
  if (needed > ring_->num_free() || ring_->next_are_touched(needed)) return false;
  const std::int64_t index = ring_->take_untouched();
  ++num_working_;
  lock.unlock();
  ring_->touch(index);
  lock.lock();
  ring_->put_back(index);
  if (--num_working_ == 0) quiet_.notify_all();
  ring_->work_available().notify_all();
  return true;
}

void WindowReader::open_planned() {
  if (!planned_) return;
  const std::int64_t end_batch = next_batch_ + static_cast<std::int64_t>(pending_.size());
  const std::int64_t needed = slots_needed();
  if (needed > ring_->num_free() || !ring_->next_are_touched(needed)) return;
  for (std::int64_t batch = end_batch; batch < end_batch + needed; ++batch) {
    const std::int64_t index = ring_->take_free();
    internal::BatchSlot& slot = ring_->slot(index);
    slot.epoch = start_epoch_ + batch / num_steps_;
    slot.step = batch % num_steps_;
    slot.rows = slot.step == num_steps_ - 1 ? batch_rows_[1] : batch_rows_[0];
    pending_.push_back({.slot = index, .rows_missing = slot.rows});
  }
  find_places(*planned_);
  open_.push_back(std::move(planned_));
  ring_->work_available().notify_all();
}

void WindowReader::find_places(Task& task) const {
  const std::int64_t lane = task.plan.lane - first_lane_;
  const auto num_batches = static_cast<std::size_t>(task.last_batch - task.first_batch + 1);
  task.ids.resize(num_batches);
  task.streamed.resize(num_batches * arrays_.size());
  task.kept.resize(num_batches * kept_.size());
  for (std::size_t batch = 0; batch < num_batches; ++batch) {
    const auto pending = static_cast<std::size_t>(task.first_batch - next_batch_) + batch;
    const internal::BatchSlot& slot = ring_->slot(pending_[pending].slot);
    const auto row = static_cast<std::size_t>(slot.step == num_steps_ - 1
                                                  ? last_lane_row_[static_cast<std::size_t>(lane)]
                                                  : lane * lane_batch_);
    task.ids[batch] = slot.sample_ids + row;
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
      const StreamedArray& array = arrays_[i];
      std::byte* const values = array.field ? slot.fields[*array.field] : slot.images;
      task.streamed[i * num_batches + batch] = values + row * array.row_bytes;
    }
    for (std::size_t i = 0; i < kept_.size(); ++i) {
      const KeptField& field = kept_[i];
      task.kept[i * num_batches + batch] = slot.fields[field.field] + row * field.row_bytes;
    }
  }
}

void WindowReader::keep_spare(std::unique_ptr<Task> task) {
  // More than these two a lane are windows of a few rows, which cost little to make anew.
  if (spare_.size() < 2 * cursors_.size()) spare_.push_back(std::move(task));
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
  RowGroup group = row_group(group_visit.group);
  group.announced = number < task.next_announced;
  if (group.announced) {
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
    const base::TraceRange range(base::Stage::visit);
    place_rows(task, group_visit, scratch);
    fill_ids(task, group_visit, scratch);
    fill_kept(task, group_visit, scratch);
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
      fill_targets(task, i, scratch);
      cost += arrays_[i].source->place(group, scratch.targets, stop);
    }
  } catch (...) {
    error = std::current_exception();
    if (options_.on_error == OnError::skip && !stop.stop_requested()) {
      skip_reason = reason_to_skip(error);
      if (skip_reason) leave_out(task, scratch);
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
  statistics_.add_visit(task.epoch, cost);
  if (--task.visits_left == 0) complete(task);
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

// One pass for each thing that is written, so that each loop has few streams of memory and no
// branch: with images of 3 KiB, looking for their places would else take a tenth of the time of
// copying them.

void WindowReader::place_rows(const Task& task, const plan::GroupVisit& visit,
                              Scratch& scratch) const {
  const std::span rows = std::span(task.plan.rows).subspan(visit.first, visit.count);
  scratch.places.resize(rows.size());
  // Delivery indexes relative to the first sample of the window's first batch fit 32 bits
  // (EpochOrder bounds the window), and 32-bit division is several times cheaper than 64-bit.
  const auto lane_batch = static_cast<std::uint32_t>(lane_batch_);
  const auto shift = static_cast<std::uint32_t>(task.plan.first_index % lane_batch_);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::uint32_t index = rows[i].index + shift;
    const std::uint32_t batch = index / lane_batch;
    scratch.places[i] = {.offset = rows[i].row, .batch = batch, .row = index - batch * lane_batch};
  }
  if (!groups_.is_selection()) return;
  groups_.offsets(visit.group, scratch.offsets);
  for (RowPlace& place : scratch.places) place.offset = scratch.offsets[place.offset];
}

void WindowReader::fill_ids(const Task& task, const plan::GroupVisit& visit,
                            Scratch& scratch) const {
  const std::int64_t first_row = row_group(visit.group).first_row;
  // Each goes to another cache line, all over the window: they are fetched ahead of the stores.
  constexpr std::size_t kAhead = 32;
  const std::span<const RowPlace> places = scratch.places;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (i + kAhead < places.size()) {
      const RowPlace& later = places[i + kAhead];
      __builtin_prefetch(task.ids[later.batch] + later.row, 1);
    }
    task.ids[places[i].batch][places[i].row] = first_row + places[i].offset;
  }
}

void WindowReader::fill_kept(const Task& task, const plan::GroupVisit& visit,
                             Scratch& scratch) const {
  const auto first_row = static_cast<std::size_t>(row_group(visit.group).first_row);
  for (std::size_t i = 0; i < kept_.size(); ++i) {
    const std::size_t row_bytes = kept_[i].row_bytes;
    const std::byte* const values = kept_[i].values + first_row * row_bytes;
    std::byte* const* const starts = task.kept.data() + i * task.ids.size();
    const auto copy_rows = [&](auto bytes) {
      for (const RowPlace& place : scratch.places) {
        std::memcpy(starts[place.batch] + place.row * bytes(), values + place.offset * bytes(),
                    bytes());
      }
    };
    // Labels have a size that is worth a loop without calls.
    if (row_bytes == sizeof(std::int64_t)) {
      copy_rows([] { return sizeof(std::int64_t); });
    } else {
      copy_rows([row_bytes] { return row_bytes; });
    }
  }
}

void WindowReader::fill_targets(const Task& task, std::size_t array, Scratch& scratch) const {
  const std::size_t row_bytes = arrays_[array].row_bytes;
  std::byte* const* const starts = task.streamed.data() + array * task.ids.size();
  scratch.targets.resize(scratch.places.size());
  for (std::size_t i = 0; i < scratch.places.size(); ++i) {
    const RowPlace& place = scratch.places[i];
    scratch.targets[i] = {.row = place.offset,
                          .target = starts[place.batch] + place.row * row_bytes};
  }
}

void WindowReader::leave_out(const Task& task, const Scratch& scratch) const {
  for (const RowPlace& place : scratch.places) {
    task.ids[place.batch][place.row] = internal::BatchSlot::kLeftOut;
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
  keep_spare(std::move(*found));
  open_.erase(found);
  // Who waited for these last visits waits for the consumer from here on, or may go on.
  if (open_.empty()) ring_->work_available().notify_all();
}

}  // namespace chunkio::pipeline
