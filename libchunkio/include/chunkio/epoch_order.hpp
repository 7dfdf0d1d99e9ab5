/// The order in which an epoch delivers samples: a pure function of its options.
///
///     const chunkio::RowGroups groups(100, 50'000);  // chunks of 100 samples
///     const chunkio::EpochOrder order(groups, {.seed = 7, .batch_size = 256}, 0);  // epoch 0
///     for (std::int64_t step = 0; step < order.num_steps(); ++step) {
///       const std::vector<std::int64_t> rows = order.batch(step);
///     }
///
/// The order depends on (seed, epoch, row groups and the rows selected of them, window, lanes,
/// global batch, mode) and on nothing else: not on thread count, memory budget, timing, platform,
/// nor on which rank asks. Ranks only decide who delivers which part. File formats and resumed runs
/// rely on it: the definition is in libchunkio/doc/order.md, with test vectors from an independent
/// implementation in tests/golden/.
///
/// Data flow: RowGroups + OrderOptions -> EpochOrder -> (internal) window plans -> Loader.
/// Immutable after construction; safe to share between threads.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <chunkio/export.hpp>

namespace chunkio {

namespace internal {
struct Access;
}

/// How samples are ordered within an epoch.
enum class OrderMode : std::uint8_t {
  chunk_shuffled = 0,  ///< Row groups in random order, samples mixed within windows of them.
  sequential = 1,      ///< File order.
  random = 2,          ///< One permutation of all samples: for comparison and small data.
};

/// What happens where lanes differ by one sample.
enum class Uneven : std::uint8_t {
  pad = 0,   ///< Short lanes deliver their first sample once more.
  drop = 1,  ///< Long lanes leave out their last sample.
  /// Every sample exactly once; the last batches may differ in size, and ranks by a step.
  exact = 2,
};

CHUNKIO_EXPORT std::string_view to_string(OrderMode mode) noexcept;
CHUNKIO_EXPORT std::string_view to_string(Uneven uneven) noexcept;

/// This reader and how many there are: 0 <= rank < world_size.
struct Ranks {
  std::int64_t rank = 0;
  std::int64_t world_size = 1;
  /// The variables they were read from ("RANK and WORLD_SIZE"); empty if they were not.
  std::string origin = {};

  /// From what the launcher has set: torchrun (RANK, WORLD_SIZE), else Open MPI
  /// (OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE), else PMI (PMI_RANK, PMI_SIZE), else Slurm
  /// (SLURM_PROCID, SLURM_NTASKS); the first pair of which a variable is set, be it to nothing,
  /// counts. Not while another thread changes the environment.
  /// \throws Error invalid_argument: none is set, only one of a pair is, or the values are not
  ///         numbers with 0 <= rank < world_size. The message names the variables.
  static CHUNKIO_EXPORT Ranks from_environment();
  /// The same, but absent if none of the variables is set.
  static CHUNKIO_EXPORT std::optional<Ranks> find_in_environment();
};

/// Rows [begin, end) of a dataset.
struct RowRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  friend bool operator==(const RowRange&, const RowRange&) = default;
};

/// Some rows of a dataset: a set, so the order in which they are named does not matter. Immutable;
/// copies share their memory (16 bytes a range).
class CHUNKIO_EXPORT RowSelection {
 public:
  /// \param ranges  in any order; touching ones are joined.
  /// \throws Error invalid_argument: none, an empty or negative range, or a row named twice.
  explicit RowSelection(std::vector<RowRange> ranges);
  /// Single rows, in any order. \throws Error as above.
  static RowSelection of(std::span<const std::int64_t> rows);

  // No moves, so that no selection is ever empty.
  RowSelection(const RowSelection&) = default;
  RowSelection& operator=(const RowSelection&) = default;
  ~RowSelection() = default;

  /// Ascending, disjoint, never touching; at least one.
  [[nodiscard]] std::span<const RowRange> ranges() const noexcept { return *ranges_; }
  /// Rows in all ranges.
  [[nodiscard]] std::int64_t count() const noexcept { return count_; }
  /// The rows that are in both; absent if there are none.
  [[nodiscard]] std::optional<RowSelection> intersect(const RowSelection& other) const;

 private:
  std::shared_ptr<const std::vector<RowRange>> ranges_;
  std::int64_t count_ = 0;
};

/// The rows of a dataset cut into groups that are loaded together: for chunked data all chunks that
/// share a coordinate on axis 0, otherwise runs of rows. Groups are numbered file after file; the
/// last group of each file may be short.
///
/// With a selection, a group has only its selected rows, and groups without any are left out: the
/// numbers of groups count the others.
class CHUNKIO_EXPORT RowGroups {
 public:
  /// \param group_samples  k, samples in a full group, >= 1.
  /// \param file_samples   samples of each file, each >= 1; rows are numbered through all of them.
  /// \throws Error invalid_argument.
  RowGroups(std::int64_t group_samples, std::span<const std::int64_t> file_samples);
  /// One file of `num_samples`, >= 1.
  RowGroups(std::int64_t group_samples, std::int64_t num_samples);
  /// Some rows of one file of `num_rows`. Keeps O(ranges + groups with selected rows) numbers; none
  /// if all rows are selected, which is no selection.
  /// \throws Error invalid_argument: a selected row that the file does not have, or groups of
  ///         2^32 rows or more.
  RowGroups(std::int64_t group_samples, std::int64_t num_rows, const RowSelection& selection);
  /// Some rows of several files, numbered through all of them.
  RowGroups(std::int64_t group_samples, std::span<const std::int64_t> file_rows,
            const RowSelection& selection);

  [[nodiscard]] std::int64_t group_samples() const noexcept { return group_samples_; }
  /// Samples of all groups: with a selection, the selected ones.
  [[nodiscard]] std::int64_t num_samples() const noexcept;
  [[nodiscard]] std::int64_t num_groups() const noexcept;
  /// Samples in group g, 0 <= g < num_groups(): with a selection, its selected ones. O(log files),
  /// O(1) with a selection.
  [[nodiscard]] std::int64_t length(std::int64_t group) const noexcept;
  /// Samples in the largest group.
  [[nodiscard]] std::int64_t max_length() const noexcept { return max_length_; }
  /// The rows of the file that group g is cut from, selected or not.
  [[nodiscard]] RowRange extent(std::int64_t group) const noexcept;
  /// The row of the i-th sample of group g, 0 <= i < length(g). O(log files), or O(log ranges).
  [[nodiscard]] std::int64_t row(std::int64_t group, std::int64_t sample) const noexcept;
  /// The number of the group that a row lies in, where groups without selected rows count, too.
  /// \pre 0 <= row < the rows of all files. O(log files).
  [[nodiscard]] std::int64_t number_of(std::int64_t row) const noexcept;
  /// Fills `offsets` with the samples of group g, ascending, as row numbers relative to
  /// extent(g).begin. Without a selection that is 0, 1, ..., length(g) - 1.
  /// \pre length(g) < 2^32, which EpochOrder checks.
  void offsets(std::int64_t group, std::vector<std::uint32_t>& offsets) const;
  /// Whether some rows are left out.
  [[nodiscard]] bool is_selection() const noexcept { return selection_ != nullptr; }
  /// Bytes that the selection and its tables take, shared by all copies; 0 without one.
  [[nodiscard]] std::int64_t memory_bytes() const noexcept;

  /// Without a selection the groups shorter than group_samples(), ascending, at most one a file;
  /// with one, none.
  [[nodiscard]] std::span<const std::int64_t> short_groups() const noexcept {
    return short_groups_;
  }

 private:
  struct Selection;
  [[nodiscard]] RowRange extent_of_number(std::int64_t number) const noexcept;

  std::int64_t group_samples_;
  std::int64_t max_length_ = 0;
  std::vector<std::int64_t> file_first_row_;    // one more than files
  std::vector<std::int64_t> file_first_group_;  // one more than files; unselected groups count
  std::vector<std::int64_t> short_groups_;
  std::shared_ptr<const Selection> selection_;
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
  /// O(number of row groups) up to 65,536 of them, O(1) above; O(number of row groups) with a
  /// selection.
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

  /// Bytes of its tables, without those of groups(): the same for every epoch. At most 512 KiB;
  /// with a selection 8 more for each row group.
  [[nodiscard]] std::int64_t memory_bytes() const noexcept;

  /// Internal.
  struct Impl;

 private:
  friend struct internal::Access;
  [[nodiscard]] const Impl& impl() const noexcept { return *impl_; }
  std::unique_ptr<const Impl> impl_;
};

}  // namespace chunkio
