/// What stands behind an EpochOrder: the geometry of libchunkio/doc/order.md in code.
///
/// Words: the *sequence* is all N samples with the row groups laid end to end in epoch order; a
/// *position* is an index into it; *slot* q is where the q-th row group of the sequence lies; a
/// *delivery index* counts the samples of one lane in the order in which they are delivered.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <chunkio/epoch_order.hpp>

#include "base/keyed_permutation.hpp"

namespace chunkio::plan {

/// Where slots begin. Nothing is stored for a full group: a slot begins at q * k less what the
/// short groups in the slots before it lack, and there is at most one short group a file. The
/// groups of a selection are of any length, so there the start of each slot is.
class SlotStarts {
 public:
  /// \param permutation  slot -> group; null: slot q holds group q. Not kept.
  SlotStarts(const RowGroups& groups, const base::KeyedPermutation* permutation);

  /// First position of a slot, 0 <= slot <= number of groups. O(log files), O(1) with a selection.
  [[nodiscard]] std::int64_t start(std::int64_t slot) const noexcept;
  /// The slot that holds a position, 0 <= position < N. O(log files), O(log groups) with a
  /// selection.
  [[nodiscard]] std::int64_t slot_of(std::int64_t position) const noexcept;
  [[nodiscard]] std::int64_t memory_bytes() const noexcept;

 private:
  struct ShortSlot {
    std::int64_t slot = 0;
    std::int64_t end = 0;      // one past its last position
    std::int64_t lacking = 0;  // samples that it and all short slots before it lack
  };
  [[nodiscard]] std::int64_t lacking_before(
      std::vector<ShortSlot>::const_iterator it) const noexcept {
    return it == short_slots_.begin() ? 0 : std::prev(it)->lacking;
  }

  std::int64_t group_samples_;
  std::vector<ShortSlot> short_slots_;  // ascending
  std::vector<std::int64_t> starts_;    // of a selection: one more than groups; else empty
};

/// Lane v: positions [begin, end) of the sequence.
struct Lane {
  std::int64_t index = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  /// Delivery indexes: end - begin, or fewer (dropped), or one more (padded).
  std::int64_t delivered = 0;

  [[nodiscard]] std::int64_t size() const noexcept { return end - begin; }
};

/// A window of a lane before anything is dropped: slots [first_slot, end_slot) and positions
/// [begin, end).
struct WindowSpan {
  std::int64_t first_slot = 0;
  std::int64_t end_slot = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;

  [[nodiscard]] std::int64_t size() const noexcept { return end - begin; }
};

}  // namespace chunkio::plan

namespace chunkio {

struct EpochOrder::Impl {
  Impl(RowGroups row_groups, OrderOptions order_options, std::int64_t epoch_number);

  RowGroups groups;
  OrderOptions options;  // lanes resolved
  std::int64_t epoch;
  std::int64_t lane_batch;    // b
  std::int64_t window_slots;  // W, at most the number of groups; 1 in sequential order
  /// slot -> group in chunk_shuffled, index -> sample in random; none in sequential order.
  std::optional<base::KeyedPermutation> permutation;
  /// Of the sequence; in random order, of the file's own order: slot = group, position = sample.
  plan::SlotStarts slots;

  [[nodiscard]] plan::Lane lane(std::int64_t index) const noexcept;
  /// The lanes that options.rank delivers: [first, end).
  [[nodiscard]] std::int64_t first_lane() const noexcept;
  [[nodiscard]] std::int64_t end_lane() const noexcept;

  [[nodiscard]] std::int64_t group_in_slot(std::int64_t slot) const noexcept;
  /// The row of the dataset at a position of the sequence.
  [[nodiscard]] std::int64_t row_at(std::int64_t position) const noexcept;

  // The rest has no meaning in random order.

  [[nodiscard]] std::int64_t num_windows(const plan::Lane& lane) const noexcept;
  [[nodiscard]] plan::WindowSpan window_span(const plan::Lane& lane,
                                             std::int64_t window) const noexcept;
  [[nodiscard]] std::int64_t window_of(const plan::Lane& lane,
                                       std::int64_t position) const noexcept;
  /// The stream that permutes a window's samples.
  [[nodiscard]] base::PhiloxStream window_stream(const plan::Lane& lane,
                                                 const plan::WindowSpan& span) const noexcept;
};

}  // namespace chunkio
