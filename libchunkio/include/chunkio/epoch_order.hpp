/// The order in which an epoch delivers samples: a pure function of its options.
///
/// The order depends on (seed, epoch, row-group lengths, window, lanes, global batch, mode) and on
/// nothing else: not on thread count, memory budget, timing, platform, nor on which rank asks.
/// Ranks only decide who delivers which part. File formats and resumed runs rely on it: the
/// definition is in libchunkio/doc/order.md, with test vectors from an independent implementation
/// in tests/golden/.
///
/// Data flow: RowGroups + OrderOptions -> EpochOrder -> (internal) window plans -> Loader.
/// Immutable after construction; safe to share between threads.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include <chunkio/export.hpp>

namespace chunkio {

/// How samples are ordered within an epoch.
enum class OrderMode : std::uint8_t {
  chunk_shuffled = 0,  ///< Row groups in random order, samples mixed within windows of them.
  sequential = 1,      ///< File order.
  random = 2,          ///< One permutation of all samples: for comparison and small data.
};

/// What happens where lanes differ by one sample.
enum class Uneven : std::uint8_t {
  pad = 0,    ///< Short lanes deliver their first sample once more.
  drop = 1,   ///< Long lanes leave out their last sample.
  exact = 2,  ///< Every sample exactly once; the last batches may differ in size.
};

CHUNKIO_EXPORT std::string_view to_string(OrderMode mode) noexcept;
CHUNKIO_EXPORT std::string_view to_string(Uneven uneven) noexcept;

/// The rows of a dataset cut into groups that are loaded together: for chunked data all chunks that
/// share a coordinate on axis 0, otherwise runs of rows. Groups are numbered file after file; the
/// last group of each file may be short.
class CHUNKIO_EXPORT RowGroups {
 public:
  /// \param group_samples  k, samples in a full group, >= 1.
  /// \param file_samples   samples of each file, each >= 1; rows are numbered through all of them.
  /// \throws Error invalid_argument.
  RowGroups(std::int64_t group_samples, std::span<const std::int64_t> file_samples);
  /// One file of `num_samples`, >= 1.
  RowGroups(std::int64_t group_samples, std::int64_t num_samples);

  [[nodiscard]] std::int64_t group_samples() const noexcept { return group_samples_; }
  [[nodiscard]] std::int64_t num_samples() const noexcept { return file_first_row_.back(); }
  [[nodiscard]] std::int64_t num_groups() const noexcept { return file_first_group_.back(); }
  /// First row of group g, 0 <= g < num_groups(). O(log files).
  [[nodiscard]] std::int64_t first_row(std::int64_t group) const noexcept;
  /// Samples in group g. O(log files).
  [[nodiscard]] std::int64_t length(std::int64_t group) const noexcept;
  /// The groups shorter than group_samples(), ascending; at most one a file.
  [[nodiscard]] std::span<const std::int64_t> short_groups() const noexcept {
    return short_groups_;
  }

 private:
  std::int64_t group_samples_;
  std::vector<std::int64_t> file_first_row_;    // one more than files
  std::vector<std::int64_t> file_first_group_;  // one more than files
  std::vector<std::int64_t> short_groups_;
};

/// What the order is a function of.
struct OrderOptions {
  OrderMode mode = OrderMode::chunk_shuffled;
  std::uint64_t seed = 0;
  /// Samples a rank delivers per step, >= 1. The global batch is batch_size * world_size.
  std::int64_t batch_size = 1;
  /// W, row groups mixed together, >= 1. Has no effect on sequential and random order.
  std::int64_t window_groups = 1;
  /// This reader and how many there are: 0 <= rank < world_size.
  std::int64_t rank = 0;
  std::int64_t world_size = 1;
  /// V, parts the order is cut into; 0 means world_size. Must be a multiple of world_size and
  /// divide the global batch. Runs with different world_size but equal lanes, window, seed and
  /// global batch deliver identical global batches.
  std::int64_t lanes = 0;
  Uneven uneven = Uneven::pad;
  /// Leave out the last, smaller batch. Not with Uneven::exact.
  bool drop_last = false;
};

/// The order of one epoch.
class CHUNKIO_EXPORT EpochOrder {
 public:
  /// O(number of row groups) up to 65,536 of them, O(1) above.
  /// \throws Error invalid_argument: options out of range; lanes not a multiple of world_size, or
  ///         not dividing the global batch (the message says which numbers would do); fewer
  ///         samples than lanes; exact with drop_last.
  EpochOrder(RowGroups groups, OrderOptions options, std::int64_t epoch);
  EpochOrder(EpochOrder&&) noexcept;
  EpochOrder& operator=(EpochOrder&&) noexcept;
  ~EpochOrder();

  [[nodiscard]] const RowGroups& groups() const noexcept;
  /// As given, with `lanes` resolved.
  [[nodiscard]] const OrderOptions& options() const noexcept;
  [[nodiscard]] std::int64_t epoch() const noexcept;

  /// Batches this rank delivers. The same for all ranks in pad and drop.
  [[nodiscard]] std::int64_t num_steps() const noexcept;
  /// Samples this rank delivers in step t, 0 <= t < num_steps().
  [[nodiscard]] std::int64_t batch_rows(std::int64_t step) const noexcept;
  /// Samples this rank delivers in the whole epoch.
  [[nodiscard]] std::int64_t num_delivered() const noexcept;
  /// The rows of step t in delivery order. Costs one window of work for each lane: for inspection
  /// and tests; a Loader plans whole windows instead.
  /// \throws Error invalid_argument for a step that does not exist.
  [[nodiscard]] std::vector<std::int64_t> batch(std::int64_t step) const;

  /// Internal. The implementation behind it, used by the window planner.
  struct Impl;
  [[nodiscard]] const Impl& impl() const noexcept { return *impl_; }

 private:
  std::unique_ptr<const Impl> impl_;
};

}  // namespace chunkio
