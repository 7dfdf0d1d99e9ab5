/// Keeps windows in flight and turns them into complete batches, in order.
///
/// Problem. Batches 0, 1, 2, ... of consecutive epochs must become complete in order. A window
/// (plan/window_plan.hpp) spreads its rows over a range of batches; each batch takes rows from one
/// or more windows of every lane of this rank. A window may be read as soon as every batch it
/// touches has a slot in the ring.
///
/// Invariant. Slots are given to batches in order, and windows are opened in order of the first
/// batch they touch. So every window opened before the one that completes batch s starts at or
/// before s, and all of them touch only batches below s + span, span being the most batches one
/// window can touch. With span slots beyond those that the consumer holds, the window that
/// completes the next batch can always be opened: there is no deadlock, and with twice that, one
/// window drains while the next is filled.
///
/// Work. Worker threads take, in this order: planning the next window (one thread at a time; some
/// 3 % of the work with 32x32x3 pictures), visiting the next row group of an open window, waiting.
/// Completion is counted by window, not by row: the rows of a shuffled window are spread over all
/// its batches, so its first batch completes with nearly the last row group anyway.
///
/// Thread safety: start(), next() and stats from one consumer thread; all state is guarded by
/// Ring::mutex() except what belongs to the thread that holds the planning role (named below).
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include <chunkio/epoch_order.hpp>
#include <chunkio/loader.hpp>

#include "base/chunk_source.hpp"
#include "pipeline/ring.hpp"
#include "plan/window_plan.hpp"

namespace chunkio::pipeline {

/// All rows of the labels and small fields, as RingLayout::fields, read once.
using ResidentFields = std::vector<std::vector<std::byte>>;

struct WindowReaderOptions {
  OrderOptions order = {};
  std::int64_t num_threads = 1;
  std::int64_t max_held = 1;
  std::optional<std::int64_t> num_epochs = {};
};

class WindowReader {
 public:
  /// Starts the threads.
  /// \throws Error out_of_resources if one cannot be started.
  WindowReader(RowGroups groups, const WindowReaderOptions& options,
               std::unique_ptr<ChunkSource> source, ResidentFields fields,
               std::shared_ptr<Ring> ring);
  ~WindowReader();
  WindowReader(const WindowReader&) = delete;
  WindowReader& operator=(const WindowReader&) = delete;

  /// Goes to the start of `epoch`; see Loader::start_epoch.
  void start(std::int64_t epoch);
  /// See Loader::next.
  [[nodiscard]] std::shared_ptr<const internal::BatchSlot> next();

  [[nodiscard]] LoaderStats stats() const;
  [[nodiscard]] LoaderStats epoch_stats(std::int64_t epoch) const;

 private:
  /// A window being read.
  struct Task {
    plan::WindowPlan plan;
    std::int64_t epoch = 0;
    std::int64_t first_batch = 0;  ///< Batch numbers since start(), through all epochs.
    std::int64_t last_batch = 0;
    std::size_t next_visit = 0;
    std::size_t visits_left = 0;
    /// Of batches first_batch to last_batch, from the moment the window is open.
    std::vector<internal::BatchSlot*> slots;
  };
  /// A batch that has a slot and is not yet handed out.
  struct Pending {
    std::int64_t slot = 0;
    std::int64_t rows_missing = 0;
  };
  /// Where planning stands in one lane.
  struct LaneCursor {
    std::int64_t epoch = 0;
    std::int64_t window = 0;
  };
  void work(std::stop_token stop);
  // Called with the mutex held by `lock`; they release it while they work.
  void plan_next(std::unique_lock<std::mutex>& lock);
  void visit(std::unique_lock<std::mutex>& lock, Task& task, std::vector<RowTarget>& targets);
  // Called with the mutex held.
  void open_planned();
  [[nodiscard]] Task* task_with_visit();
  void complete(Task& task);
  [[nodiscard]] LoaderStats& stats_of(std::int64_t epoch);
  void fail(std::exception_ptr error);
  void rethrow_error() const;
  void reset(std::unique_lock<std::mutex>& lock, std::int64_t epoch);

  // Called with the planning role.
  [[nodiscard]] bool plan_window(Task& task);
  [[nodiscard]] const EpochOrder& order_of(std::int64_t epoch);

  // Called by the worker that does the visit, without the mutex: it alone writes these rows.
  void fill_targets(const Task& task, const plan::GroupVisit& visit,
                    std::vector<RowTarget>& targets);

  const WindowReaderOptions options_;
  const RowGroups groups_;
  const std::unique_ptr<ChunkSource> source_;
  const ResidentFields fields_;
  const std::shared_ptr<Ring> ring_;
  // The same for every epoch.
  std::int64_t num_steps_ = 0;
  std::int64_t lane_batch_ = 0;
  std::int64_t first_lane_ = 0;
  std::vector<std::int64_t> batch_rows_;     // of step 0 and of the last step
  std::vector<std::int64_t> last_lane_row_;  // per own lane: first row in the last batch

  // Owned by the thread that set planning_ (or by reset(), when nobody works).
  std::vector<LaneCursor> cursors_;
  std::map<std::int64_t, EpochOrder> orders_;

  // Guarded by ring_->mutex().
  std::condition_variable batch_ready_;
  std::condition_variable quiet_;  // num_working_ fell to 0
  bool started_ = false;
  bool planning_ = false;
  bool all_planned_ = false;
  std::int64_t num_working_ = 0;  // threads inside plan or place
  std::int64_t start_epoch_ = 0;
  std::int64_t epoch_limit_ = 0;  // no epoch from here on is planned
  std::int64_t next_batch_ = 0;   // number of pending_.front()
  std::int64_t consumer_epoch_ = 0;
  std::deque<Pending> pending_;
  std::deque<std::unique_ptr<Task>> open_;
  std::unique_ptr<Task> planned_;             // waits for slots
  std::vector<std::unique_ptr<Task>> spare_;  // memory to reuse
  std::exception_ptr error_;
  LoaderStats total_;
  std::map<std::int64_t, LoaderStats> epochs_;
  std::stop_source cancel_;  // of the reads in flight

  std::vector<std::jthread> threads_;  // last: joined before anything they use is gone
};

}  // namespace chunkio::pipeline
