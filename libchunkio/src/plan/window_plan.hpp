/// Windows: the unit in which an epoch is loaded.
///
/// A lane of the epoch is cut into windows of row groups (libchunkio/doc/order.md); a WindowPlan
/// lists, row group by row group in the order of the epoch, which rows are wanted and at which
/// place of the lane they are delivered. Each delivered sample appears in exactly one window's
/// plan.
#pragma once

#include <cstdint>
#include <vector>

#include <chunkio/epoch_order.hpp>

namespace chunkio::plan {

struct PlannedRow {
  /// Which of the samples of its row group: without a selection the row within the group, with one
  /// an index into RowGroups::offsets.
  std::uint32_t row = 0;
  std::uint32_t index = 0;  ///< Delivery index in the lane, relative to WindowPlan::first_index.
};

/// One read of a row group: rows [first, first + count) of WindowPlan::rows, ascending by `row`.
struct GroupRead {
  std::int64_t group = 0;
  std::uint32_t first = 0;
  std::uint32_t count = 0;  ///< >= 1.
};

/// In chunk_shuffled order a window is W slots, in sequential order one row group, in random order
/// one batch of the lane. Reads are in slot order, in random order by group; the sample that pads
/// a short lane is a read of its own after the others of the last window (in random order it is
/// one more row of its group's read).
struct WindowPlan {
  std::int64_t lane = 0;
  std::int64_t window = 0;       ///< Within the lane.
  std::int64_t first_index = 0;  ///< Delivery index in the lane of the window's first sample.
  /// One past the last delivery index (padding included, dropped excluded).
  std::int64_t end_index = 0;
  std::vector<GroupRead> reads;
  std::vector<PlannedRow> rows;
};

/// Where one window lies, without its rows: O(log) to compute, used for flow control.
struct WindowExtent {
  std::int64_t first_index = 0;
  std::int64_t end_index = 0;  ///< == first_index if nothing of the window is delivered.
};

/// Windows of a lane, at least 1. Lanes are numbered over all ranks, 0 <= lane < lanes.
[[nodiscard]] std::int64_t num_windows(const EpochOrder& order, std::int64_t lane);
[[nodiscard]] WindowExtent window_extent(const EpochOrder& order, std::int64_t lane,
                                         std::int64_t window);
/// Computes the rows of a window into `plan`, reusing its memory. O(samples in the window), except
/// in random order: O(b log b). Thread-safe for distinct plans.
void plan_window(const EpochOrder& order, std::int64_t lane, std::int64_t window, WindowPlan& plan);

/// The window that delivers a sample: 0 <= index < lane_delivered(). O(log).
[[nodiscard]] std::int64_t window_of(const EpochOrder& order, std::int64_t lane,
                                     std::int64_t index);
/// Removes what is delivered before `index` of the lane, for a run that goes on in the middle: the
/// plan begins there (or at its own start or end, whichever is nearer), its delivery indexes are
/// relative to that, and row groups of which nothing is left are not read. In place,
/// O(samples in the plan).
void drop_before(WindowPlan& plan, std::int64_t index);

/// Samples the lane delivers over all its steps (its used length, cut by drop_last).
[[nodiscard]] std::int64_t lane_delivered(const EpochOrder& order, std::int64_t lane);
/// b, samples of one lane in a full batch.
[[nodiscard]] std::int64_t lane_batch(const EpochOrder& order);
/// An upper bound of the delivery indexes that `count` >= 0 consecutive windows of any lane cover;
/// never more than a lane delivers.
[[nodiscard]] std::int64_t max_window_samples(const EpochOrder& order, std::int64_t count);

}  // namespace chunkio::plan
