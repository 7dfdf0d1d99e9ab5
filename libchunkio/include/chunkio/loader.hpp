/// Streams a dataset as shuffled uint8 batches.
///
///     chunkio::Loader loader(dataset, {.batch_size = 256, .seed = 7});
///     for (const chunkio::Batch& batch : loader.epoch(0)) {
///       train(batch.images(), batch.labels());
///     }
///
/// Data flow: EpochOrder -> window plans -> worker threads -> ChunkSource -> ring slots -> Batch
/// leases. Each row group is read once an epoch, and each row is copied once, straight to its place
/// in its batch. A Loader is driven by one thread at a time; batches may be passed to and released
/// on any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <chunkio/chunk_layout.hpp>
#include <chunkio/dataset.hpp>
#include <chunkio/epoch_order.hpp>
#include <chunkio/export.hpp>
#include <chunkio/tensor.hpp>

namespace chunkio {

/// How bytes come from the file.
enum class SourceKind : std::uint8_t {
  automatic = 0,  ///< The fastest that is correct for the file; LoaderStats says which and why.
  scatter = 1,    ///< Positional reads of whole row groups, rows copied to their places.
  hdf5 = 2,       ///< H5Dread of row ranges: everything libhdf5 can read.
  mapped = 3,     ///< Rows copied from a memory mapping of a local file.
};

CHUNKIO_EXPORT std::string_view to_string(SourceKind kind) noexcept;

/// What a Loader delivers, and what it may use for that.
struct LoaderOptions {
  // Behaviour: what is delivered, and in which order.

  /// Samples a batch, >= 1.
  std::int64_t batch_size = 256;
  std::uint64_t seed = 0;
  OrderMode order = OrderMode::chunk_shuffled;
  /// Leave out the last, smaller batch of an epoch.
  bool drop_last = false;
  /// This reader and how many there are; see OrderOptions.
  std::int64_t rank = 0;
  std::int64_t world_size = 1;
  std::int64_t lanes = 0;
  Uneven uneven = Uneven::pad;
  /// Bytes of the row groups mixed together: larger mixes better, needs more memory (two windows
  /// for each lane are held) and delays the first batch. Default 256 MiB, >= 1. Part of the order.
  std::int64_t window_bytes = kDefaultWindowBytes;
  /// Names of further fields to deliver beside pictures and labels.
  std::vector<std::string> fields = {};

  // Performance: never changes what is delivered.

  /// Worker threads, at most 1024; 0 (default): the CPUs this process may use, at most 8.
  std::int64_t num_threads = 0;
  /// Batches kept complete ahead of the consumer at least, 1 to 2^20. More than two windows
  /// hold cost memory.
  std::int64_t prefetch_depth = 4;
  /// Batches the consumer may hold at once, 1 to 2^20. One more is an error, not a hang.
  std::int64_t max_held = 4;
  /// Bytes the loader may allocate, held batches included. Default 1 GiB. Less than the window and
  /// batch sizes need is an error that names the minimum.
  std::int64_t memory_budget = std::int64_t{1} << 30;
  SourceKind source = SourceKind::automatic;
  /// The epoch after which nothing is prefetched: set it to the number of epochs if that is known,
  /// so that no bytes are read in vain. Absent: the next epoch is prefetched while one drains.
  std::optional<std::int64_t> num_epochs = {};
};

namespace internal {
class BatchSlot;
}

/// A batch: a shared lease of one ring buffer. The memory is valid and never overwritten until the
/// last copy is gone, also after the Loader is. Copies may live on any thread.
class CHUNKIO_EXPORT Batch {
 public:
  Batch() noexcept;
  Batch(const Batch&) noexcept;
  Batch(Batch&&) noexcept;
  Batch& operator=(const Batch&) noexcept;
  Batch& operator=(Batch&&) noexcept;
  ~Batch();

  /// uint8 [B,H,W,C] or [B,C,H,W], as the file has it. Rows are contiguous.
  [[nodiscard]] TensorView images() const;
  /// int64 [B], or uint8 [B,A]; empty if the file has no labels.
  [[nodiscard]] TensorView labels() const;
  /// A field named in LoaderOptions::fields, [B,...].
  /// \throws Error not_found.
  [[nodiscard]] TensorView field(std::string_view name) const;
  /// Row numbers in the file, one a sample.
  [[nodiscard]] std::span<const std::int64_t> sample_ids() const;
  /// Samples in this batch: batch_size, or less at the end of an epoch.
  [[nodiscard]] std::int64_t size() const;
  [[nodiscard]] std::int64_t epoch() const;
  /// Position of the batch in its epoch, from 0.
  [[nodiscard]] std::int64_t step() const;

 private:
  friend class Loader;
  explicit Batch(std::shared_ptr<const internal::BatchSlot> slot) noexcept;
  std::shared_ptr<const internal::BatchSlot> slot_;
};

/// What was delivered and what it cost. Seconds are wall time unless said.
struct LoaderStats {
  std::int64_t batches = 0;          ///< Handed out.
  std::int64_t images = 0;           ///< Handed out.
  std::int64_t bytes_delivered = 0;  ///< Picture bytes handed out.
  std::int64_t bytes_read = 0;       ///< Picture bytes asked of the file (raw bytes for hdf5).
  std::int64_t chunk_loads = 0;      ///< Row-group visits that fetched bytes.
  double stall_seconds = 0;          ///< The consumer waited inside next().
  double read_seconds = 0;           ///< Summed over workers: inside the chunk source.
  double plan_seconds = 0;           ///< Summed over workers: computing windows.
  double idle_seconds = 0;           ///< Summed over workers: no free batch buffer to fill.

  /// 1 - chunk_loads / images; 0 when nothing was delivered.
  [[nodiscard]] double hit_rate() const noexcept {
    return images == 0 ? 0.0 : 1.0 - static_cast<double>(chunk_loads) / static_cast<double>(images);
  }
  /// bytes_read / bytes_delivered.
  [[nodiscard]] double read_amplification() const noexcept {
    return bytes_delivered == 0
               ? 0.0
               : static_cast<double>(bytes_read) / static_cast<double>(bytes_delivered);
  }
};

class Loader;

/// The batches of one epoch, for a range-for loop. Valid while the Loader lives.
class CHUNKIO_EXPORT EpochRange {
 public:
  class CHUNKIO_EXPORT Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;
    using pointer = const Batch*;
    using reference = const Batch&;

    reference operator*() const noexcept { return *batch_; }
    pointer operator->() const noexcept { return &*batch_; }
    /// Releases the current batch and waits for the next.
    /// \throws Error as Loader::next().
    Iterator& operator++();
    void operator++(int) { ++*this; }
    friend bool operator==(const Iterator& it, std::default_sentinel_t) noexcept {
      return !it.batch_.has_value();
    }

   private:
    friend class EpochRange;
    explicit Iterator(Loader* loader);
    Loader* loader_;
    std::optional<Batch> batch_;
  };

  /// Waits for the first batch. To be called once.
  /// \throws Error as Loader::next().
  [[nodiscard]] Iterator begin() const { return Iterator(loader_); }
  [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

 private:
  friend class Loader;
  explicit EpochRange(Loader* loader) noexcept : loader_(loader) {}
  Loader* loader_;
};

/// Reads a dataset epoch by epoch. One thread at a time, except where a member says otherwise.
class CHUNKIO_EXPORT Loader {
 public:
  /// Reserves memory, reads labels and fields and starts threads. Pictures are read from the first
  /// start_epoch() on. Blocks on I/O.
  /// \throws Error invalid_argument, not_found (no such field), out_of_resources (memory_budget
  ///         below the minimum, which the message names), unsupported (the chosen source cannot
  ///         read this file), io_failed, hdf5_failed.
  Loader(Dataset dataset, LoaderOptions options);
  Loader(Loader&&) noexcept;
  Loader& operator=(Loader&&) noexcept;
  /// Stops and joins the workers. Never blocks longer than the reads in flight.
  ~Loader();

  /// Goes to the start of an epoch (0 to 2^62) and returns its batches. An epoch that was
  /// prefetched goes on without a gap; what is left of an earlier one is dropped. May wait for
  /// reads in flight. \throws Error invalid_argument (epoch out of range), and what next() throws
  /// after a worker failed.
  [[nodiscard]] EpochRange epoch(std::int64_t epoch);
  /// The same, for callers of next().
  void start_epoch(std::int64_t epoch);
  /// The next batch, or nothing at the end of the epoch. Blocks until it is complete.
  /// \throws Error out_of_resources (max_held batches are still held), and whatever a worker met:
  ///         io_failed, corrupt_data, hdf5_failed. After such an error every call throws it again.
  [[nodiscard]] std::optional<Batch> next();

  /// Batches and samples of an epoch, the same for every epoch.
  [[nodiscard]] std::int64_t num_steps() const noexcept;
  [[nodiscard]] std::int64_t samples_per_epoch() const noexcept;

  /// Since construction. Safe to call at any time, from any thread.
  [[nodiscard]] LoaderStats stats() const;
  /// Of one epoch; exact once the epoch has been drained. Zeros for one that was not touched or is
  /// older than the last eight.
  [[nodiscard]] LoaderStats epoch_stats(std::int64_t epoch) const;

  [[nodiscard]] const LoaderOptions& options() const noexcept;
  [[nodiscard]] const Dataset& dataset() const noexcept;
  /// The source in use, and why it was chosen (one clause).
  [[nodiscard]] SourceKind source() const noexcept;
  [[nodiscard]] std::string source_reason() const;
  /// W and k of the order, and how many row groups there are.
  [[nodiscard]] std::int64_t window_groups() const noexcept;
  [[nodiscard]] const RowGroups& row_groups() const noexcept;
  /// Bytes reserved, <= memory_budget.
  [[nodiscard]] std::int64_t memory_bytes() const noexcept;
  [[nodiscard]] std::int64_t num_threads() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace chunkio
