#include "read/window_reader.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <iterator>
#include <span>
#include <string>
#include <utility>

#include "base/trace.hpp"
#include "read/loader_state.hpp"

namespace chunkio::read {
namespace {

// Row groups that a worker prefetches before it looks for other work.
constexpr std::size_t kPrefetchedAtOnce = 64;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

WindowReader::WindowReader(RowGroups groups, WindowReaderOptions options,
                           std::vector<StreamedArray> arrays, CachedFields fields,
                           std::shared_ptr<Ring> ring)
    : options_(std::move(options)),
      groups_(std::move(groups)),
      ring_(std::move(ring)),
      scheduler_(groups_, options_.order, options_.num_epochs, options_.prefetch_bytes, *ring_),
      filler_(groups_, std::move(arrays), std::move(fields), ring_->layout(),
              scheduler_.lane_batch()),
      threads_(*ring_) {
  threads_.start(options_.num_threads, [this](std::stop_token stop) { work(std::move(stop)); });
}

std::int64_t WindowReader::footprint(const EpochOrder& order, const WindowReaderOptions& options,
                                     std::int64_t num_slots, std::size_t num_arrays) {
  const RowGroups& groups = order.groups();
  const std::int64_t num_steps = std::max<std::int64_t>(order.num_steps(), 1);
  const std::int64_t epochs =
      ReaderStatistics::kEpochBytes *
      (num_slots / num_steps + 2 + static_cast<std::int64_t>(ReaderStatistics::kEpochsRemembered));
  std::int64_t skipped = 0;
  if (options.on_error == OnError::skip) {
    constexpr std::size_t kNodeBytes = 128;  // of the map, its key, the string and the heap
    skipped = std::min(groups.num_samples(), kMaxSkippedRuns) *
              static_cast<std::int64_t>(kMaxReasonBytes + kNodeBytes);
  }
  return WindowScheduler::footprint(order, num_slots, num_arrays) +
         SlotFiller::footprint(groups, options.num_threads) + epochs + skipped;
}

WindowReader::~WindowReader() {
  cancel_.request_stop();
  threads_.stop();
  scheduler_.drop_prefetched();  // before the sources
  // Leases may outlive us; slots that were never handed out have no other owner.
}

void WindowReader::start(std::int64_t epoch, std::int64_t step) {
  require_own_process();
  if (epoch < 0 || epoch > kMaxEpoch) {
    throw Error(ErrorCode::invalid_argument,
                "epoch must be between 0 and 2^62, got " + std::to_string(epoch));
  }
  if (step < 0 || step > scheduler_.num_steps()) {
    throw Error(ErrorCode::invalid_argument, "step must be between 0 and " +
                                                 std::to_string(scheduler_.num_steps()) + ", got " +
                                                 std::to_string(step));
  }
  std::unique_lock lock(ring_->mutex());
  rethrow_error();
  const bool stays = started_ && scheduler_.stands_at(epoch, step);
  if (!stays) reset(lock, epoch, step);
  // Staying in the middle of an epoch, its clock goes on with its other counters.
  statistics_.enter(epoch, stays && epoch == consumer_epoch_ && step > 0, Clock::now());
  if (step == scheduler_.num_steps()) statistics_.leave(Clock::now());
  consumer_epoch_ = epoch;
}

void WindowReader::reset(std::unique_lock<std::mutex>& lock, std::int64_t epoch,
                         std::int64_t step) {
  started_ = false;  // no worker takes up anything new
  cancel_.request_stop();
  threads_.wait_until_quiet(lock);
  rethrow_error();

  statistics_.restart(Clock::now());
  scheduler_.reset(epoch, step);
  ring_->drop_rows();
  cancel_ = std::stop_source();
  started_ = true;
  ring_->work_available().notify_all();
}

std::shared_ptr<const internal::BatchSlot> WindowReader::next(const std::stop_token& stop,
                                                              std::chrono::nanoseconds timeout) {
  require_own_process();
  base::WaitHook look(options_.on_wait, stop, timeout);
  try {
    return next(look);
  } catch (const base::Interrupted& interrupted) {
    std::rethrow_exception(interrupted.thrown);
  }
}

std::shared_ptr<const internal::BatchSlot> WindowReader::next(base::WaitHook& look) {
  const base::TraceRange range(base::Stage::hand_over);
  // Before the lock, so that it is given back after it: giving back locks the mutex, too.
  std::shared_ptr<const internal::BatchSlot> leased;
  std::unique_lock lock(ring_->mutex());
  rethrow_error();
  if (!started_) {
    throw Error(ErrorCode::invalid_argument, "start_epoch() comes before next()");
  }
  if (scheduler_.num_steps() == 0 || scheduler_.next_epoch() != consumer_epoch_) return nullptr;
  if (options_.when_held == WhenHeld::wait) wait_for_release(lock, look);
  const bool all_held = ring_->num_leased() >= options_.max_held;
  // The wait of calls that ended early counts for the batch that comes in the end.
  const Clock::time_point start = Clock::now() - std::exchange(waited_, {});
  try {
    wait_for_batch(lock, look);
  } catch (...) {
    waited_ = Clock::now() - start;
    throw;
  }
  const Clock::time_point end = Clock::now();
  rethrow_error();
  // Before anything changes: there may be no memory.
  const std::shared_ptr<OwnBatch> own = all_held ? ring_->make_own() : nullptr;

  const std::int64_t index = scheduler_.next_slot();
  internal::BatchSlot& slot = ring_->slot(index);
  std::int64_t skipped = 0;
  const auto close_gaps = [&] {
    if (options_.on_error == OnError::skip) skipped = slot.close_gaps();
  };
  const bool sparse = ring_->layout().sparse.has_value();
  if (sparse) {
    lock.unlock();  // the slot is complete, so that nobody else works with it
    close_gaps();
    ring_->assemble(slot);
    lock.lock();
  }
  leased = ring_->lease(index);
  scheduler_.take_next();

  if (own || (!sparse && options_.on_error == OnError::skip)) {
    lock.unlock();  // the lease keeps everybody else off the slot
    if (!sparse) close_gaps();
    if (own) {
      own->fill(slot);
      leased = {own, &own->slot()};
    }
    lock.lock();
  }
  std::int64_t bytes = leased->rows * filler_.streamed_row_bytes();
  if (sparse) {
    bytes += static_cast<std::int64_t>(leased->sparse.bytes()) -
             leased->rows * static_cast<std::int64_t>(sizeof(base::SparseRow));
  }
  statistics_.add_batch(
      {.images = leased->rows, .skipped = skipped, .bytes = bytes, .copied = own != nullptr}, start,
      end);
  if (leased->step == scheduler_.num_steps() - 1) statistics_.leave(Clock::now());
  return leased;
}

void WindowReader::wait_for_batch(std::unique_lock<std::mutex>& lock, base::WaitHook& look) {
  const auto is_ready = [this] { return error_ || scheduler_.next_is_complete(); };
  if (is_ready()) return;
  const base::TraceRange stall(base::Stage::wait_for_batch);
  static_cast<void>(look.wait(batch_ready_, lock, base::Seconds::max(), is_ready));
}

void WindowReader::wait_for_release(std::unique_lock<std::mutex>& lock, base::WaitHook& look) {
  const auto is_released = [this] { return error_ || ring_->num_leased() < options_.max_held; };
  if (is_released()) {
    held_since_.reset();
    return;
  }
  // The calls that ended early belong to one wait.
  if (!held_since_) held_since_ = Clock::now();
  const base::Seconds left = options_.release_timeout - (Clock::now() - *held_since_);
  // work_available() is notified when a lease is given back.
  const bool released = look.wait(ring_->work_available(), lock, left, is_released);
  held_since_.reset();
  if (released) return;
  throw base::WaitEnded(
      ErrorCode::timed_out,
      "all " + std::to_string(options_.max_held) +
          " batches that may be held at once are held (max_held), and none was released within " +
          base::to_text(options_.release_timeout) +
          " (release_timeout_seconds); release one before next(), or raise max_held",
      "max_held", "release_timeout_seconds");
}

LoaderPosition WindowReader::position() const {
  require_own_process();
  const std::lock_guard lock(ring_->mutex());
  return {.epoch = consumer_epoch_, .step = scheduler_.steps_taken(consumer_epoch_)};
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
  for (const auto& [first_row, rows] : skipped_) all.push_back(rows);
  return all;
}

void WindowReader::require_own_process() const {
  if (ring_->in_own_process()) return;
  throw Error(ErrorCode::unsupported,
              "this loader was made before fork(), and its threads stayed in the parent process; "
              "open the dataset and make a loader after fork()");
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
  SlotFiller::Scratch scratch(groups_);
  lock.lock();
  while (!stop.stop_requested()) {
    if (started_ && !error_) {
      if (scheduler_.open_planned(filler_)) ring_->work_available().notify_all();
      if (prefetch_ahead(lock)) continue;
      if (scheduler_.may_plan()) {
        plan_next(lock);
        continue;
      }
      if (WindowTask* task = scheduler_.task_to_read()) {
        read_group(lock, *task, scratch);
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
  const bool for_output = scheduler_.waits_for_consumer();
  const base::TraceRange range(for_output ? base::Stage::wait_for_buffer
                                          : base::Stage::wait_for_input);
  const auto what =
      for_output ? ReaderStatistics::WaitFor::output : ReaderStatistics::WaitFor::input;
  statistics_.begin_wait(what, Clock::now());
  ring_->work_available().wait(lock);
  statistics_.end_wait(what, Clock::now());
}

bool WindowReader::prefetch_ahead(std::unique_lock<std::mutex>& lock) {
  std::array<WindowScheduler::Prefetch, kPrefetchedAtOnce> ahead;
  const std::size_t num_ahead = scheduler_.take_prefetches(ahead);
  if (num_ahead == 0) return false;
  threads_.run_unlocked(lock, [&] {
    const base::TraceRange range(base::Stage::prefetch);
    for (WindowScheduler::Prefetch& one : std::span(ahead).first(num_ahead)) {
      one.result = filler_.prefetch(one.group, one.wanted);
    }
  });
  scheduler_.end_prefetches(std::span(ahead).first(num_ahead));
  ring_->work_available().notify_all();
  return true;
}

void WindowReader::plan_next(std::unique_lock<std::mutex>& lock) {
  std::unique_ptr<WindowTask> task = scheduler_.begin_plan();
  double seconds = 0;
  bool found = false;
  std::exception_ptr error;
  threads_.run_unlocked(lock, [&] {
    const Clock::time_point start = Clock::now();
    try {
      const base::TraceRange range(base::Stage::plan);
      if (!task) task = std::make_unique<WindowTask>();
      found = scheduler_.plan_window(*task);
    } catch (...) {
      error = std::current_exception();
    }
    seconds = seconds_since(start);
  });
  if (error) {
    scheduler_.fail_plan();
    fail(std::move(error));
    return;
  }
  if (found) statistics_.add_plan(task->epoch, seconds);
  scheduler_.end_plan(std::move(task), found);
  // The caller's loop opens it; another thread may then plan on or read.
  if (found) ring_->work_available().notify_all();
}

bool WindowReader::touch_slot(std::unique_lock<std::mutex>& lock) {
  const std::optional<std::int64_t> index = scheduler_.take_untouched_slot();
  if (!index) return false;
  threads_.run_unlocked(lock, [&] { ring_->touch(*index); });
  ring_->put_back(*index);
  ring_->work_available().notify_all();
  return true;
}

void WindowReader::read_group(std::unique_lock<std::mutex>& lock, WindowTask& task,
                              SlotFiller::Scratch& scratch) {
  WindowScheduler::NextRead next = scheduler_.take_read(task);
  const std::stop_token stop = cancel_.get_token();
  ReadCost cost;
  std::exception_ptr error;
  std::optional<Damage> damage;
  bool skips = false;
  threads_.run_unlocked(lock, [&] {
    const Clock::time_point start = Clock::now();
    try {
      const base::TraceRange range(base::Stage::read_group);
      filler_.fill(task.plan, task.rows, next.read, next.group, next.prefetched, scratch, stop,
                   cost);
    } catch (...) {
      error = std::current_exception();
      if (options_.on_error == OnError::skip && !stop.stop_requested()) {
        damage = damage_to_skip(next.group, error);
        if (damage) skips = filler_.mark_skipped(task.rows, next.group, damage->rows, scratch);
      }
    }
    next.prefetched.clear();
    // What the sources do not count is filling in targets, ids and labels.
    cost.copy_seconds += std::max(
        seconds_since(start) - cost.read_seconds - cost.decode_seconds - cost.copy_seconds, 0.0);
  });
  if (stop.stop_requested())
    return;  // abandoned: by reset(), by an error elsewhere, or by the destructor
  if (error && !damage) {
    fail(std::move(error));
    return;
  }
  // Rows that are damaged need not be among those that it wants.
  if (skips) remember_skipped(next.read.group, *damage);
  statistics_.add_group_read(task.epoch, cost);
  if (!scheduler_.finish_read(task)) return;
  if (scheduler_.next_is_complete()) batch_ready_.notify_all();
  // Who waited for these last reads waits for the consumer from here on, or may go on.
  if (scheduler_.none_open()) ring_->work_available().notify_all();
}

std::optional<WindowReader::Damage> WindowReader::damage_to_skip(const RowGroup& group,
                                                                 std::exception_ptr& error) const {
  try {
    try {
      std::rethrow_exception(error);
    } catch (const Error& cause) {
      if (!concerns_stored_bytes(cause.code())) return std::nullopt;
      if (options_.check_whole_file) options_.check_whole_file();
      Damage damage;
      const RowRange all = {group.first_row, group.first_row + group.num_rows};
      const auto add = [&](const RowRange& rows, const std::string& reason) {
        // A chunk may be compared whole of which the group is a part.
        const RowRange inside{std::max(rows.begin, all.begin), std::min(rows.end, all.end)};
        if (inside.begin >= inside.end) return;
        damage.rows.push_back(inside);
        damage.reasons.push_back(reason.substr(0, kMaxReasonBytes));
      };
      if (const auto* damaged = dynamic_cast<const DamagedRows*>(&cause)) {
        for (std::size_t i = 0; i < damaged->rows().size(); ++i) {
          add(damaged->rows()[i], damaged->reason(i));
        }
      } else {
        add(all, cause.what());
      }
      return damage;
    }
  } catch (...) {
    error = std::current_exception();
    return std::nullopt;
  }
}

void WindowReader::remember_skipped(std::int64_t group, const Damage& damage) {
  std::vector<std::uint32_t> selected;
  groups_.offsets(group, selected);
  const std::int64_t group_row = groups_.extent(group).begin;
  const auto count_before = [&](std::int64_t row) {
    return std::lower_bound(selected.begin(), selected.end(), row - group_row) - selected.begin();
  };
  const auto add = [&](std::int64_t begin, std::int64_t end, const std::string& reason) {
    const std::int64_t num_selected = count_before(end) - count_before(begin);
    if (num_selected == 0 || std::ssize(skipped_) == kMaxSkippedRuns) return;
    skipped_.try_emplace(begin, SkippedRows{.first_row = begin,
                                            .num_rows = end - begin,
                                            .num_selected = num_selected,
                                            .reason = reason});
  };
  for (std::size_t i = 0; i < damage.rows.size(); ++i) {
    RowRange rows = damage.rows[i];
    const std::string& reason = damage.reasons[i];
    // What is known already keeps its first reason.
    auto next = skipped_.upper_bound(rows.begin);
    const auto end_of = [](const auto& run) { return run.first + run.second.num_rows; };
    if (next != skipped_.begin()) rows.begin = std::max(rows.begin, end_of(*std::prev(next)));
    for (; next != skipped_.end() && next->first < rows.end; ++next) {
      if (rows.begin < next->first) add(rows.begin, next->first, reason);
      rows.begin = end_of(*next);
    }
    if (rows.begin < rows.end) add(rows.begin, rows.end, reason);
  }
}

}  // namespace chunkio::read
