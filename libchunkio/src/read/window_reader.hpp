/// Keeps windows in flight and turns them into complete batches, in order.
///
/// Three parts do the work: a WindowScheduler says what comes next and which slots it gets (and why
/// that never deadlocks), a SlotFiller places the rows of a group read, and ReaderThreads run both.
/// The reader joins them, and is what the consumer talks to.
///
/// Work. Worker threads take, in this order: having the sources prefetch what is read soon,
/// planning the next window (one thread at a time; some 3 % of the work with 32x32x3 images), the
/// next group read of an open window, bringing a slot that the planned window needs to its first
/// use, waiting. The slots of the second window come after the group reads of the first one, for
/// which the consumer waits.
///
/// Rows that are skipped (OnError::skip) keep their places until the batch is handed out: next()
/// moves the rows behind them up, so nothing else depends on what was damaged.
///
/// Thread safety: start(), next() and position() from one consumer thread, the statistics and
/// skipped() from any. Ring::mutex() is the only mutex: it guards the ring, all of this class, the
/// scheduler but for its planning role, and the count of ReaderThreads. In a process forked from
/// the one that made the reader every call throws, and the reader must not be destroyed: condition
/// variables would wait for threads that do not exist.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <chunkio/epoch_order.hpp>
#include <chunkio/loader.hpp>

#include "base/wait_hook.hpp"
#include "read/reader_statistics.hpp"
#include "read/reader_threads.hpp"
#include "read/ring.hpp"
#include "read/slot_filler.hpp"
#include "read/window_scheduler.hpp"

namespace chunkio::read {

struct WindowReaderOptions {
  OrderOptions order = {};
  std::int64_t num_threads = 1;
  std::int64_t max_held = 1;
  WhenHeld when_held = WhenHeld::wait;
  base::Seconds release_timeout = {};
  std::function<void()> on_wait = {};
  std::optional<std::int64_t> num_epochs = {};
  std::int64_t prefetch_bytes = WindowScheduler::kPrefetchBytes;  ///< See there.
  OnError on_error = OnError::raise;
  /// Throws if the whole file has become unusable: then nothing is skipped. May be empty.
  std::function<void()> check_whole_file = {};
};

class WindowReader {
 public:
  /// Runs of rows that skipped() lists at most, and the bytes of each reason.
  static constexpr std::int64_t kMaxSkippedRuns = 10'000;
  static constexpr std::size_t kMaxReasonBytes = 512;

  /// Starts the threads.
  /// \param arrays  read one after the other at each group read.
  /// \throws Error out_of_resources if a thread cannot be started.
  WindowReader(RowGroups groups, WindowReaderOptions options, std::vector<StreamedArray> arrays,
               CachedFields fields, std::shared_ptr<Ring> ring);
  ~WindowReader();
  WindowReader(const WindowReader&) = delete;
  WindowReader& operator=(const WindowReader&) = delete;

  /// Bytes that a reader takes at most, beside the ring, its sources, its fields and its orders.
  /// \param num_arrays  streamed arrays and cached fields.
  [[nodiscard]] static std::int64_t footprint(const EpochOrder& order,
                                              const WindowReaderOptions& options,
                                              std::int64_t num_slots, std::size_t num_arrays);

  /// Goes to batch `step` of `epoch`, 0 <= step <= the epoch's batches, unless it is there already.
  /// See Loader::start_epoch.
  void start(std::int64_t epoch, std::int64_t step = 0);
  /// See Loader::next.
  [[nodiscard]] std::shared_ptr<const internal::BatchSlot> next(
      const std::stop_token& stop = {},
      std::chrono::nanoseconds timeout = std::chrono::nanoseconds::max());
  /// See Loader::position.
  [[nodiscard]] LoaderPosition position() const;

  /// Without `facts`.
  [[nodiscard]] LoaderStats stats() const;
  [[nodiscard]] LoaderStats epoch_stats(std::int64_t epoch) const;
  /// See Loader::skipped.
  [[nodiscard]] std::vector<SkippedRows> skipped() const;
  /// \throws Error unsupported in a child forked from the process of the reader.
  void require_own_process() const;

 private:
  using Clock = ReaderStatistics::Clock;

  void work(std::stop_token stop);
  /// Takes `lock`, and holds it when it returns or throws out of the bookkeeping.
  void work_until(const std::stop_token& stop, std::unique_lock<std::mutex>& lock);
  // Called with the mutex held by `lock`; they release it while they work.
  [[nodiscard]] bool prefetch_ahead(std::unique_lock<std::mutex>& lock);
  void plan_next(std::unique_lock<std::mutex>& lock);
  void read_group(std::unique_lock<std::mutex>& lock, WindowTask& task,
                  SlotFiller::Scratch& scratch);
  /// Brings a slot that the planned window needs to its first use. What that takes is no copying:
  /// no statistics count it.
  [[nodiscard]] bool touch_slot(std::unique_lock<std::mutex>& lock);
  void wait_for_work(std::unique_lock<std::mutex>& lock);
  /// Waits until the next batch is complete or reading has failed. Lets go of `lock` while `look`
  /// runs, also if that throws.
  void wait_for_batch(std::unique_lock<std::mutex>& lock, base::WaitHook& look);
  /// Waits until fewer than max_held batches are held or reading has failed; likewise.
  /// \throws WaitEnded.
  void wait_for_release(std::unique_lock<std::mutex>& lock, base::WaitHook& look);
  [[nodiscard]] std::shared_ptr<const internal::BatchSlot> next(base::WaitHook& look);
  void reset(std::unique_lock<std::mutex>& lock, std::int64_t epoch, std::int64_t step);
  /// Rows of a failed group read that are skipped, and why.
  struct Damage {
    std::vector<RowRange> rows;
    std::vector<std::string> reasons;  // one for each
  };
  // Called with the mutex held.
  void remember_skipped(std::int64_t group, const Damage& damage);
  void fail(std::exception_ptr error);
  void rethrow_error() const;

  /// What is skipped of a failed group read; or nothing, and `error` is what to raise. Without the
  /// mutex.
  [[nodiscard]] std::optional<Damage> damage_to_skip(const RowGroup& group,
                                                     std::exception_ptr& error) const;

  const WindowReaderOptions options_;
  const RowGroups groups_;
  const std::shared_ptr<Ring> ring_;

  // Guarded by ring_->mutex(), as far as their headers say so.
  WindowScheduler scheduler_;
  const SlotFiller filler_;

  // Guarded by ring_->mutex().
  std::condition_variable batch_ready_;
  bool started_ = false;
  std::int64_t consumer_epoch_ = 0;
  std::exception_ptr error_;
  ReaderStatistics statistics_;
  std::map<std::int64_t, SkippedRows> skipped_;  // by first row; disjoint
  std::optional<Clock::time_point> held_since_;  // max_held batches, while next() waits for that
  Clock::duration waited_{};                     // in calls of next() that ended early
  std::stop_source cancel_;                      // of the reads in flight

  ReaderThreads threads_;  // last: joined before anything they use is gone
};

}  // namespace chunkio::read
