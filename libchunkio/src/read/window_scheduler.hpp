/// Decides which window is planned, opened and read next, and which batch gets which slot.
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
/// completes the next batch can always be opened: there is no deadlock, and with twice that
/// (plan/ring_slots.hpp), one window drains while the next is filled. Starting in the middle of an
/// epoch cuts the first window of each lane, which only makes it touch fewer batches.
///
/// Completion is counted by window, not by row: the rows of a shuffled window are spread over all
/// its batches, so its first batch completes with nearly the last row group anyway.
///
/// Thread safety: all calls are made with Ring::mutex() held, and everything here is guarded by it,
/// but for plan_window(): it has the planning role, which one thread has at a time, from
/// begin_plan() to end_plan(), and what it uses is named below. Nothing here waits, notifies or
/// reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <chunkio/epoch_order.hpp>

#include "base/chunk_source.hpp"
#include "plan/window_plan.hpp"
#include "read/ring.hpp"
#include "read/slot_filler.hpp"

namespace chunkio::read {

/// A window that is planned or being read.
struct WindowTask {
  plan::WindowPlan plan;
  std::int64_t epoch = 0;
  std::int64_t first_batch = 0;  ///< Batches counted from step 0 of the epoch of reset().
  std::int64_t last_batch = 0;
  std::size_t next_read = 0;
  std::size_t reads_left = 0;
  std::size_t next_prefetch = 0;  ///< The next group read to be prefetched, ...
  std::size_t prefetch_end = 0;   ///< ... before this one.
  std::size_t prefetched = 0;     ///< Those before this one were prefetched, or never will be.
  std::map<std::size_t, Prefetched> ahead;  ///< Of group reads, what that returned.
  WindowRows rows;                          ///< From the moment the window is open.
};

class WindowScheduler {
 public:
  /// How far ahead of the group reads the sources prefetch, in bytes of the leading array, unless
  /// more is wanted: some 30 ms of a disk at 2 GB/s, so that its queue does not run dry between two
  /// group reads, and little beside the page cache.
  static constexpr std::int64_t kPrefetchBytes = std::int64_t{64} << 20;

  struct Prefetch {
    WindowTask* task = nullptr;
    std::size_t read = 0;  ///< Its group read.
    RowGroup group = {};
    RowRange wanted = {};  ///< From the first to the last row that the group read wants.
    Prefetched result = {};
  };
  /// The group read to be done next, of the task that was asked for it.
  struct NextRead {
    const plan::GroupRead& read;
    RowGroup group;
    Prefetched prefetched;
  };

  /// Keeps `groups` and `ring`.
  /// \param prefetch_bytes  how far ahead sources prefetch, as kPrefetchBytes.
  WindowScheduler(const RowGroups& groups, const OrderOptions& order,
                  std::optional<std::int64_t> num_epochs, std::int64_t prefetch_bytes, Ring& ring);

  /// Bytes that a scheduler takes at most, beside its orders.
  /// \param num_arrays  streamed arrays and cached fields.
  [[nodiscard]] static std::int64_t footprint(const EpochOrder& order, std::int64_t num_slots,
                                              std::size_t num_arrays);

  [[nodiscard]] std::int64_t num_steps() const noexcept { return num_steps_; }
  /// Rows of one lane in a full batch.
  [[nodiscard]] std::int64_t lane_batch() const noexcept { return lane_batch_; }
  [[nodiscard]] RowGroup row_group(std::int64_t group) const noexcept;

  // The consumer's side.
  /// Begins anew at batch `step` of `epoch`. \pre no task is planned or read.
  void reset(std::int64_t epoch, std::int64_t step);
  /// Whether the next batch is `step` of `epoch`, 0 <= step <= num_steps(). \pre reset() was
  /// called.
  [[nodiscard]] bool stands_at(std::int64_t epoch, std::int64_t step) const;
  /// The epoch of the next batch. \pre num_steps() > 0.
  [[nodiscard]] std::int64_t next_epoch() const noexcept {
    return start_epoch_ + next_batch_ / num_steps_;
  }
  /// Batches of `epoch` that were taken. \pre the next batch is in it, or the first of the one
  /// after.
  [[nodiscard]] std::int64_t steps_taken(std::int64_t epoch) const noexcept;
  [[nodiscard]] bool next_is_complete() const noexcept {
    return !pending_.empty() && pending_.front().rows_missing == 0;
  }
  /// The slot of the next batch. \pre next_is_complete().
  [[nodiscard]] std::int64_t next_slot() const noexcept { return pending_.front().slot; }
  /// The consumer has the next batch. \pre next_is_complete().
  void take_next() noexcept;

  // The workers' side.
  [[nodiscard]] bool may_plan() const noexcept { return !planned_ && !planning_ && !all_planned_; }
  /// Takes the planning role. \returns what plan_window() may use again, or null. \pre may_plan().
  [[nodiscard]] std::unique_ptr<WindowTask> begin_plan() noexcept;
  /// With the planning role, without the mutex. \returns false beyond the last epoch.
  [[nodiscard]] bool plan_window(WindowTask& task);
  /// Gives the planning role back. \param found  what plan_window() returned.
  void end_plan(std::unique_ptr<WindowTask> task, bool found);
  /// The same after an error.
  void fail_plan() noexcept { planning_ = false; }

  /// Opens the planned window, if there is one and its batches can have slots that are in use.
  /// \returns whether it did.
  bool open_planned(const SlotFiller& filler);
  /// A slot that the planned window needs and that was never used, to be put back to the ring once
  /// it was touched.
  [[nodiscard]] std::optional<std::int64_t> take_untouched_slot();

  /// The next group reads to be prefetched, in `room`, by one thread at a time: nobody does them
  /// before end_prefetches().
  [[nodiscard]] std::size_t take_prefetches(std::span<Prefetch> room);
  /// What was prefetched and not read will not be.
  void drop_prefetched() noexcept;
  /// With the results of those that were taken.
  void end_prefetches(std::span<Prefetch> taken);
  /// An open window with a group read that can be done and that nobody does yet; or null.
  [[nodiscard]] WindowTask* task_to_read() noexcept;
  [[nodiscard]] NextRead take_read(WindowTask& task);
  /// One group read is done. \returns whether it was the last of its window, which is closed then.
  bool finish_read(WindowTask& task);

  [[nodiscard]] bool none_open() const noexcept { return open_.empty(); }
  /// Everything planned is read, and what comes next has no slots or does not exist: only the
  /// consumer can change that. Otherwise another worker plans, or does the last group reads.
  [[nodiscard]] bool waits_for_consumer() const noexcept {
    return open_.empty() && (planned_ || all_planned_);
  }

 private:
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

  /// Free slots that the planned window still waits for. \pre planned_.
  [[nodiscard]] std::int64_t slots_needed() const noexcept;
  void point_at_slots(WindowTask& task, const SlotFiller& filler);
  void close(WindowTask& task);
  void keep_spare(std::unique_ptr<WindowTask> task);
  [[nodiscard]] RowRange wanted_rows(const WindowTask& task,
                                     const plan::GroupRead& read) const noexcept;
  [[nodiscard]] std::int64_t leading_bytes(const RowGroup& group) const noexcept;

  // With the planning role.
  /// The window that the lane needs next, or nothing beyond the last epoch.
  [[nodiscard]] std::optional<plan::WindowExtent> next_window(LaneCursor& cursor,
                                                              std::int64_t lane);
  [[nodiscard]] const EpochOrder& order_of(std::int64_t epoch);

  const RowGroups& groups_;
  const OrderOptions order_options_;
  const std::optional<std::int64_t> num_epochs_;
  const std::int64_t prefetch_bytes_;
  Ring& ring_;
  // The same for every epoch.
  std::int64_t num_steps_ = 0;
  std::int64_t lane_batch_ = 0;
  std::int64_t first_lane_ = 0;
  std::vector<std::int64_t> batch_rows_;     // of step 0 and of the last step
  std::vector<std::int64_t> last_lane_row_;  // per own lane: first row in the last batch

  // Set by reset(), when nobody plans, and read by everybody.
  std::int64_t start_epoch_ = 0;
  std::int64_t epoch_limit_ = 0;  // no epoch from here on is planned

  // Owned by the thread that has the planning role (or by reset()).
  std::vector<LaneCursor> cursors_;
  std::map<std::int64_t, EpochOrder> orders_;

  // Guarded by Ring::mutex().
  bool planning_ = false;     // a thread has the planning role
  bool prefetching_ = false;  // a thread has prefetches
  bool all_planned_ = false;
  std::int64_t next_batch_ = 0;  // number of pending_.front(), counted as WindowTask::first_batch
  std::deque<Pending> pending_;
  std::deque<std::unique_ptr<WindowTask>> open_;
  std::unique_ptr<WindowTask> planned_;             // waits for slots
  std::vector<std::unique_ptr<WindowTask>> spare_;  // memory to reuse
  std::int64_t ahead_bytes_ = 0;                    // prefetched and not yet read
};

}  // namespace chunkio::read
