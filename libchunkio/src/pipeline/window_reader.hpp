/// Keeps windows in flight and turns them into complete batches, in order.
///
/// Problem. Batches t, t+1, t+2, ... of an epoch and of those after it must become complete in
/// order. A window (plan/window_plan.hpp) spreads its rows over a range of batches; each batch
/// takes rows from one or more windows of every lane of this rank. A window may be read as soon as
/// every batch it touches has a slot in the ring.
///
/// Invariant. Slots are given to batches in order, and windows are opened in order of the first
/// batch they touch. So every window opened before the one that completes batch s starts at or
/// before s, and all of them touch only batches below s + span, span being the most batches one
/// window can touch. With span slots beyond those that the consumer holds, the window that
/// completes the next batch can always be opened: there is no deadlock, and with twice that, one
/// window drains while the next is filled. Starting in the middle of an epoch cuts the first window
/// of each lane, which only makes it touch fewer batches.
///
/// Work. Worker threads take, in this order: telling the sources what will be needed soon, planning
/// the next window (one thread at a time; some 3 % of the work with 32x32x3 images), visiting the
/// next row group of an open window, bringing a slot that the planned window needs to its first
/// use, waiting. The slots of the second window come after the visits of the first one, for which
/// the consumer waits. Completion is counted by window, not by row: the rows of a shuffled window
/// are spread over all its batches, so its first batch completes with nearly the last row group
/// anyway.
///
/// Rows left out (OnError::skip) keep their places until the batch is handed out: next() moves the
/// rows behind them up, so nothing else depends on what was damaged.
///
/// Thread safety: start(), next() and position() from one consumer thread, the statistics and
/// skipped() from any; all state is guarded by Ring::mutex() except what belongs to the thread that
/// holds the planning role (named below). In a process forked from the one that made the reader
/// every call throws, and the reader must not be destroyed: condition variables would wait for
/// threads that do not exist.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <chunkio/epoch_order.hpp>
#include <chunkio/loader.hpp>

#include "base/chunk_source.hpp"
#include "pipeline/reader_statistics.hpp"
#include "pipeline/ring.hpp"
#include "plan/window_plan.hpp"

namespace chunkio::pipeline {

/// An array that is read row group by row group: the images, or a large field.
struct StreamedArray {
  std::unique_ptr<ChunkSource> source;
  std::size_t row_bytes = 0;
  std::optional<std::size_t> field = {};  ///< Index in RingLayout::fields; absent: the images.
};

/// All rows of the labels and small fields, as RingLayout::fields, read once. An empty entry is a
/// streamed field.
using KeptFields = std::vector<std::vector<std::byte>>;

struct WindowReaderOptions {
  OrderOptions order = {};
  std::int64_t num_threads = 1;
  std::int64_t max_held = 1;
  WhenHeld when_held = WhenHeld::raise;
  std::function<void()> on_wait = {};
  std::optional<std::int64_t> num_epochs = {};
  OnError on_error = OnError::raise;
  /// Throws if the whole file has become unusable: then no row group is skipped. May be empty.
  std::function<void()> check_whole_file = {};
};

class WindowReader {
 public:
  /// Row groups that skipped() lists at most, and the bytes of each reason.
  static constexpr std::int64_t kMaxSkippedGroups = 10'000;
  static constexpr std::size_t kMaxReasonBytes = 512;
  /// How far ahead of the visits the sources know what comes, in bytes of images: some 30 ms of a
  /// disk at 2 GB/s, so that its queue does not run dry between two visits, and little beside the
  /// page cache.
  static constexpr std::int64_t kReadaheadBytes = std::int64_t{64} << 20;

  /// Starts the threads.
  /// \param arrays  read one after the other at each visit of a row group.
  /// \throws Error out_of_resources if a thread cannot be started.
  WindowReader(RowGroups groups, WindowReaderOptions options, std::vector<StreamedArray> arrays,
               KeptFields fields, std::shared_ptr<Ring> ring);
  ~WindowReader();
  WindowReader(const WindowReader&) = delete;
  WindowReader& operator=(const WindowReader&) = delete;

  /// Bytes that a reader takes at most, beside the ring, its sources, its fields and its orders.
  /// \param num_arrays  streamed arrays and kept fields.
  [[nodiscard]] static std::int64_t footprint(const EpochOrder& order,
                                              const WindowReaderOptions& options,
                                              std::int64_t num_slots, std::size_t num_arrays);

  /// Goes to batch `step` of `epoch`, 0 <= step <= the epoch's batches, unless it is there already.
  /// See Loader::start_epoch.
  void start(std::int64_t epoch, std::int64_t step = 0);
  /// See Loader::next.
  [[nodiscard]] std::shared_ptr<const internal::BatchSlot> next();
  /// See Loader::position.
  [[nodiscard]] LoaderPosition position() const;

  /// Without `facts`, `bound` and `advice`.
  [[nodiscard]] LoaderStats stats() const;
  [[nodiscard]] LoaderStats epoch_stats(std::int64_t epoch) const;
  /// See Loader::skipped.
  [[nodiscard]] std::vector<SkippedRows> skipped() const;
  /// \throws Error unsupported in a child forked from the process of the reader.
  void require_own_process() const;

 private:
  using Clock = ReaderStatistics::Clock;

  /// A window being read.
  struct Task {
    plan::WindowPlan plan;
    std::int64_t epoch = 0;
    std::int64_t first_batch = 0;  ///< Batches counted from step 0 of the epoch of start().
    std::int64_t last_batch = 0;
    std::size_t next_visit = 0;
    std::size_t visits_left = 0;
    std::size_t next_announced = 0;  ///< The visit to tell the sources of next, ...
    std::size_t announced_end = 0;   ///< ... before this one.
    // From the moment the window is open: where this lane's rows of each of the batches
    // first_batch to last_batch begin, so that a row costs no look at its BatchSlot.
    std::vector<std::int64_t*> ids;    // of each batch
    std::vector<std::byte*> streamed;  // of each batch of each of arrays_
    std::vector<std::byte*> kept;      // of each batch of each of kept_
  };
  /// A batch that has a slot and is not yet handed out.
  struct Pending {
    std::int64_t slot = 0;
    std::int64_t rows_missing = 0;
  };
  /// Where planning stands in one lane.
  struct LaneCursor {
    std::int64_t epoch = 0;
    /// Nothing before this delivery index is wanted.
    std::int64_t from_index = 0;
    /// The next window; absent: the one that holds from_index, to be looked up.
    std::optional<std::int64_t> window = {};
  };
  /// A field that is copied from memory.
  struct KeptField {
    std::size_t field = 0;
    std::size_t row_bytes = 0;
    const std::byte* values = nullptr;
  };
  /// A row of a visit.
  struct RowPlace {
    std::uint32_t offset = 0;  ///< In its row group.
    std::uint32_t batch = 0;   ///< Counted from Task::first_batch.
    std::uint32_t row = 0;     ///< In the lane's rows of that batch.
  };
  /// The worker threads. They sleep until somebody notifies them, so whatever ends the reader (its
  /// constructor may fail with some of them started) has to wake them before they are joined.
  class Workers {
   public:
    explicit Workers(Ring& ring) noexcept : ring_(ring) {}
    Workers(const Workers&) = delete;
    Workers& operator=(const Workers&) = delete;
    ~Workers() { stop(); }
    /// \throws Error out_of_resources if a thread cannot be started, std::bad_alloc.
    void start(std::int64_t count, const std::function<void(std::stop_token)>& work);
    void stop() noexcept;

   private:
    Ring& ring_;
    std::vector<std::jthread> threads_;
  };
  /// What a worker has for itself, kept from visit to visit.
  struct Scratch {
    std::vector<RowPlace> places;
    std::vector<RowTarget> targets;      // of one array at a time
    std::vector<std::uint32_t> offsets;  // of a selection
  };

  void work(std::stop_token stop);
  /// Takes `lock`, and holds it when it returns or throws out of the bookkeeping.
  void work_until(const std::stop_token& stop, std::unique_lock<std::mutex>& lock);
  // Called with the mutex held by `lock`; they release it while they work.
  [[nodiscard]] bool announce_ahead(std::unique_lock<std::mutex>& lock);
  void plan_next(std::unique_lock<std::mutex>& lock);
  /// Brings a slot that the planned window needs to its first use. What that takes is no copying:
  /// no statistics count it.
  [[nodiscard]] bool touch_slot(std::unique_lock<std::mutex>& lock);
  void visit(std::unique_lock<std::mutex>& lock, Task& task, Scratch& scratch);
  void wait_for_work(std::unique_lock<std::mutex>& lock);
  // Called with the mutex held.
  /// Free slots that the planned window still waits for. \pre planned_.
  [[nodiscard]] std::int64_t slots_needed() const noexcept;
  void open_planned();
  void find_places(Task& task) const;
  void keep_spare(std::unique_ptr<Task> task);
  /// Waits until the next batch is complete or reading has failed. Lets go of `lock` while on_wait
  /// runs, also if that throws.
  void wait_for_batch(std::unique_lock<std::mutex>& lock);
  [[nodiscard]] Task* task_with_visit();
  void complete(Task& task);
  void remember_skipped(std::int64_t group, std::string reason);
  void fail(std::exception_ptr error);
  void rethrow_error() const;
  [[nodiscard]] bool stands_at(std::int64_t epoch, std::int64_t step) const;
  void reset(std::unique_lock<std::mutex>& lock, std::int64_t epoch, std::int64_t step);

  // Called with the planning role.
  [[nodiscard]] bool plan_window(Task& task);
  /// The window that the lane needs next, or nothing beyond the last epoch.
  [[nodiscard]] std::optional<plan::WindowExtent> next_window(LaneCursor& cursor,
                                                              std::int64_t lane);
  [[nodiscard]] const EpochOrder& order_of(std::int64_t epoch);

  // Called by the worker that does the visit, without the mutex: it alone writes these rows.
  void place_rows(const Task& task, const plan::GroupVisit& visit, Scratch& scratch) const;
  void fill_ids(const Task& task, const plan::GroupVisit& visit, Scratch& scratch) const;
  void fill_kept(const Task& task, const plan::GroupVisit& visit, Scratch& scratch) const;
  void fill_targets(const Task& task, std::size_t array, Scratch& scratch) const;
  void leave_out(const Task& task, const Scratch& scratch) const;
  /// Why the rows of a failed visit are left out; or nothing, and `error` is what to raise.
  [[nodiscard]] std::optional<std::string> reason_to_skip(std::exception_ptr& error) const;

  [[nodiscard]] RowGroup row_group(std::int64_t group) const noexcept;
  /// From the first to the last row that a visit wants.
  [[nodiscard]] RowRange wanted_rows(const Task& task,
                                     const plan::GroupVisit& visit) const noexcept;
  [[nodiscard]] std::int64_t picture_bytes(const RowGroup& group) const noexcept;

  const WindowReaderOptions options_;
  const RowGroups groups_;
  const std::vector<StreamedArray> arrays_;
  const KeptFields fields_;
  const std::shared_ptr<Ring> ring_;
  // The same for every epoch.
  std::vector<KeptField> kept_;
  std::int64_t streamed_row_bytes_ = 0;  // of all arrays
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
  std::int64_t num_working_ = 0;  // threads inside plan, place or will_need
  std::int64_t start_epoch_ = 0;
  std::int64_t epoch_limit_ = 0;  // no epoch from here on is planned
  std::int64_t next_batch_ = 0;   // number of pending_.front(), counted as Task::first_batch
  std::int64_t consumer_epoch_ = 0;
  std::deque<Pending> pending_;
  std::deque<std::unique_ptr<Task>> open_;
  std::unique_ptr<Task> planned_;             // waits for slots
  std::vector<std::unique_ptr<Task>> spare_;  // memory to reuse
  std::int64_t ahead_bytes_ = 0;              // announced to the sources, not yet visited
  std::exception_ptr error_;
  ReaderStatistics statistics_;
  std::map<std::int64_t, std::string> skipped_;  // row group -> reason
  std::stop_source cancel_;                      // of the reads in flight

  Workers workers_;  // last: joined before anything they use is gone
};

}  // namespace chunkio::pipeline
