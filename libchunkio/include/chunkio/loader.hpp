/// Streams a dataset as shuffled batches, as they are in the file.
///
///     chunkio::Loader loader(dataset, {.batch_size = 256, .seed = 7});
///     for (const chunkio::Batch& batch : loader.epoch(0)) {
///       train(batch["images"], batch["labels"]);
///     }
///
/// Data flow: EpochOrder -> window plans -> worker threads -> ChunkSource -> ring slots -> Batch
/// leases. Each row group is read once an epoch, and each row is copied once, straight to its place
/// in its batch. A Loader is driven by one thread at a time; batches may be passed to and released
/// on any thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <chunkio/bottleneck.hpp>
#include <chunkio/chunk_layout.hpp>
#include <chunkio/dataset.hpp>
#include <chunkio/disk_limit.hpp>
#include <chunkio/epoch_order.hpp>
#include <chunkio/export.hpp>
#include <chunkio/tensor.hpp>

namespace chunkio {

/// How bytes come from the file.
enum class SourceKind : std::uint8_t {
  /// The fastest of those that are correct for the file: see Loader::source.
  automatic = 0,
  scatter = 1,  ///< Positional reads of whole row groups, rows copied to their places.
  hdf5 = 2,     ///< H5Dread of row ranges: everything libhdf5 can read.
  mapped = 3,   ///< Rows copied from a memory mapping of a local file.
  direct = 4,   ///< Stored chunks read and decoded in parallel, without libhdf5.
};

/// When stored chunk digests are compared with what was read.
enum class Verify : std::uint8_t {
  off = 0,          ///< Never: fastest.
  first_epoch = 1,  ///< Each chunk when this loader reads it first.
  always = 2,       ///< Whenever it is read (see Resident).
  /// always, where whole chunks of a remote file with digests are read; else off.
  automatic = 3,
};

/// What happens when a chunk cannot be read or is damaged (io_failed, corrupt_data, hdf5_failed),
/// or samples do not match their digests (digest_mismatch). Chunks that overlap are thrown in any
/// case (unsupported): rows of the wrong one may have been delivered.
enum class OnError : std::uint8_t {
  raise = 0,  ///< next() throws.
  /// Damaged samples are skipped, counted and reported. A chunk that cannot be read is skipped
  /// whole (or the row group, if that is part of a chunk). Where the file has a digest for each
  /// sample (format.md, from version 2 on), only those that do not match are skipped. Rows behind
  /// them in the batch move up, so batches get shorter, maybe empty, but never later. The next
  /// epoch tries again, except for samples in memory (Resident). A file that was changed as a whole
  /// is an error all the same.
  skip = 1,
};

/// Whether images stay in memory.
enum class Resident : std::uint8_t {
  none = 0,
  /// Read once and kept; the budget must hold them all. A rank of several meets other row groups in
  /// each epoch, so it goes on reading until it has met all of them. What is kept is not read
  /// again, so Verify::always compares it at its first read only.
  host = 1,
};

/// What next() does while max_held batches are held.
enum class WhenHeld : std::uint8_t {
  /// It waits release_timeout_seconds for another thread to release one, then throws timed_out,
  /// which finds programs that forget to release them.
  wait = 0,
  /// It delivers the batch in memory of the batch's own, beyond the memory budget. That takes a
  /// copy, which counts as LoaderStats::copied_batches. Nothing that is held is ever overwritten.
  copy = 1,
};

CHUNKIO_EXPORT std::string_view to_string(SourceKind kind) noexcept;
CHUNKIO_EXPORT std::string_view to_string(Verify verify) noexcept;
CHUNKIO_EXPORT std::string_view to_string(OnError on_error) noexcept;
CHUNKIO_EXPORT std::string_view to_string(Resident resident) noexcept;
CHUNKIO_EXPORT std::string_view to_string(WhenHeld when_held) noexcept;

/// What a Loader delivers, and what it may use for that. `memory` and `io` never change what is
/// delivered, but for `on_error`.
struct LoaderOptions {
  /// The order of samples; see OrderOptions and libchunkio/doc/order.md.
  struct Order {
    OrderMode mode = OrderMode::chunk_shuffled;
    /// Bytes of the row groups mixed together: larger mixes better, needs more memory (two windows
    /// for each lane are held) and delays the first batch. Default 256 MiB, >= 1.
    std::int64_t window_bytes = kDefaultWindowBytes;
    /// Leave out the last, smaller batch of an epoch. Where that would be the only one, an error.
    bool drop_last = false;
    std::int64_t lanes = 0;
    Uneven uneven = Uneven::pad;
    /// The newest version of the order that is wanted, 1 or 2. Version 2 merges chunks of less than
    /// 1 MiB into row groups; all other files have the order of version 1 in both. A state names
    /// its version: resume() takes it from there, and restore() needs a loader that has it.
    std::int64_t version = 2;
  };
  struct Memory {
    /// Bytes the loader may allocate, held batches included. Default 1 GiB. Less than the window
    /// and batch sizes need is an error that names the minimum.
    std::int64_t budget = std::int64_t{1} << 30;
    /// Batches kept complete ahead of the consumer at least, 1 to 2^20. More than two windows hold
    /// cost memory.
    std::int64_t prefetch_depth = 4;
    /// Batches the consumer may hold at once, 1 to 2^20. One more is what `when_held` says, never a
    /// hang.
    std::int64_t max_held = 4;
    WhenHeld when_held = WhenHeld::wait;
    /// How long next() waits, where max_held batches are held, for another thread to release one; 0
    /// to 1e6, 0 not at all. If the thread that calls next() holds them all, next() throws after
    /// this time.
    double release_timeout_seconds = 5;
    Resident resident = Resident::none;
  };
  struct Io {
    /// Worker threads, at most 1024; 0 (default): the CPUs this process may use, at most 8. While a
    /// file is not in the page cache, four more may wait for the disk.
    std::int64_t num_threads = 0;
    SourceKind source = SourceKind::automatic;
    /// Bypass the page cache (O_DIRECT; direct and scatter sources), so that data far larger than
    /// memory does not push everything else out of it. Reads as usual where the file system
    /// refuses. Without it, `automatic` does so for files larger than the memory that could cache
    /// them.
    bool direct_io = false;
    /// Whether digests are compared while reading; first_epoch and always need a file that has
    /// them. Of a remote file, what does not match is asked for again, three times.
    Verify verify = Verify::automatic;
    OnError on_error = OnError::raise;
    /// The epoch after which nothing is prefetched: set it to the number of epochs if that is
    /// known, so that no unused bytes are read. Absent: the next epoch is prefetched while one
    /// drains.
    std::optional<std::int64_t> num_epochs = {};
    /// Read as if from this slower disk. Every read of a row group of the images or of a streamed
    /// field is charged as if its bytes came from there, also if they are in the page cache; images
    /// that are resident once. What is prefetched is asked for ahead, 64 MiB of it. The waiting
    /// counts as LoaderStats::read_seconds. Labels, cached fields and what describes the file are
    /// not slowed down.
    std::optional<DiskLimit> disk_limit = {};
  };

  /// Samples a batch, >= 1.
  std::int64_t batch_size = 256;
  /// Seeds the order and, unless NormalizeOptions has a seed, crops and flips.
  std::uint64_t seed = 0;
  /// Names of further fields to deliver beside images and labels. Small ones (and the labels) are
  /// read once and cached; large ones, masks say, are read row group by row group like the images.
  std::vector<std::string> fields = {};
  /// Deliver only these rows. The order is that of libchunkio/doc/order.md over what is left.
  std::optional<RowSelection> rows = {};
  /// Deliver only samples with one of these labels; needs labels that are one number a sample. With
  /// `rows`: samples that meet both.
  std::vector<std::int64_t> only_labels = {};
  Order order = {};
  /// This reader and how many there are: `.ranks = Ranks::from_environment()`.
  Ranks ranks = {};
  Memory memory = {};
  Io io = {};
  /// next() calls it some 20 times a second while it waits, on the same thread and with no lock
  /// held; never in a wait of less than 50 ms. What it throws goes to the caller of next(), and
  /// nothing is lost: the next call goes on waiting. It serves languages in which signals must be
  /// looked at.
  std::function<void()> on_wait = {};
};

/// Says that next() has no timeout.
inline constexpr std::chrono::nanoseconds kForever = std::chrono::nanoseconds::max();

namespace internal {
class BatchSlot;
struct Access;
}  // namespace internal

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

  /// An array by its name in the file, [B,...]: the one that leads, the labels, or a field named in
  /// LoaderOptions::fields. Where no array has that name, "images" are what leads, if it is images,
  /// and "labels" the labels. Read-only.
  /// \throws Error not_found: the message lists what there is; unsupported for a CSR matrix.
  [[nodiscard]] Tensor operator[](std::string_view name) const;
  /// uint8 [B,H,W,C] or [B,C,H,W], as the file has it.
  /// \throws Error unsupported if other numbers lead the dataset.
  [[nodiscard]] Tensor images() const;
  /// The array that leads the dataset, [B,...]: the images, or other numbers.
  /// \throws Error unsupported if it is a CSR matrix.
  [[nodiscard]] Tensor leading() const;
  /// Whether a CSR matrix leads the dataset.
  [[nodiscard]] bool is_sparse() const;
  /// The rows of the CSR matrix that leads the dataset, each as the file has it. Read-only.
  /// \throws Error unsupported if images or other numbers lead.
  [[nodiscard]] SparseTensor sparse() const;
  /// int64 [B], or uint8 [B,A]; empty if the file has no labels.
  [[nodiscard]] Tensor labels() const;
  /// Row numbers in the file, one a sample.
  [[nodiscard]] std::span<const std::int64_t> sample_ids() const;
  /// Samples in this batch: batch_size, or less at the end of an epoch and where damaged ones
  /// were skipped (OnError::skip), then maybe 0.
  [[nodiscard]] std::int64_t size() const;
  [[nodiscard]] std::int64_t epoch() const;
  /// Position of the batch in its epoch, from 0.
  [[nodiscard]] std::int64_t step() const;
  /// Whether it lies in memory of its own: WhenHeld::copy.
  [[nodiscard]] bool copied() const;
  /// Whether all bytes of `tensor` lie in the images, one field or the sample ids of this batch: if
  /// so, it is valid while the batch is held.
  /// \throws Error out_of_resources if its dimensions multiply to more than 63 bits.
  [[nodiscard]] bool contains(const Tensor& tensor) const;

 private:
  friend class Loader;
  friend struct internal::Access;
  explicit Batch(std::shared_ptr<const internal::BatchSlot> slot) noexcept;
  std::shared_ptr<const internal::BatchSlot> slot_;
};

/// What a loader is made of, as far as it bears on what it costs.
struct LoaderFacts {
  SourceKind source = SourceKind::automatic;
  OrderMode order = OrderMode::chunk_shuffled;
  Verify verify = Verify::off;
  Resident resident = Resident::none;
  bool filtered = false;  ///< Images are stored compressed or otherwise filtered, or encoded.
  bool encoded = false;   ///< They are JPEG, PNG or WebP images, decoded one by one.
  /// Of these a part is cut out anew each epoch, so that they cannot be resident.
  bool random_crops = false;
  bool direct_io = false;  ///< Images are read bypassing the page cache.
  /// Storage is asked for row groups before a worker comes to them, where the order is known.
  bool reads_ahead = true;
  std::int64_t num_cpus = 1;       ///< That this process may use.
  std::int64_t group_samples = 0;  ///< Of a full row group.
  std::int64_t prefetch_depth = 1;
  std::int64_t image_bytes = 0;  ///< Of all images, in memory.
  std::int64_t spare_bytes = 0;  ///< Of the memory budget, not reserved.
};

/// What was delivered and what it cost. Seconds are wall time unless said; those of workers are
/// counted when a piece of work or a wait ends. What is prefetched counts for its own epoch, so an
/// epoch's workers may have been busy before it started.
struct LoaderStats {
  std::int64_t batches = 0;          ///< Handed out.
  std::int64_t copied_batches = 0;   ///< Of these, in memory of their own: WhenHeld::copy.
  std::int64_t images = 0;           ///< Handed out.
  std::int64_t bytes_delivered = 0;  ///< Image and streamed field bytes handed out.
  std::int64_t bytes_read = 0;       ///< Stored bytes asked of the file (raw bytes for hdf5).
  std::int64_t chunk_loads = 0;      ///< Row-group reads that fetched bytes.
  std::int64_t skipped_images = 0;   ///< By OnError::skip.
  std::int64_t num_threads = 0;      ///< Workers, for the sums below.

  /// From the start of the epoch (of the first epoch, for all) to the last batch handed out.
  double seconds = 0;
  double stall_seconds = 0;  ///< The consumer waited inside next().

  // Summed over workers: what they were busy with ...
  double plan_seconds = 0;    ///< Computing windows.
  double read_seconds = 0;    ///< Waiting for storage.
  double decode_seconds = 0;  ///< Undoing filters, checking digests.
  /// Bringing rows to their places; copies out of the page cache. Not that the system makes the
  /// pages of a batch buffer before its first use, which no sum has.
  double copy_seconds = 0;
  // ... and what they waited for, while the consumer was in the epoch (between two: in all only).
  double input_wait_seconds = 0;   ///< For the plan of the next window, or others' last reads.
  double output_wait_seconds = 0;  ///< For a free batch buffer: the consumer is the slow one.

  LoaderFacts facts = {};

  /// What limits, what shows it, and what would help, with the stall that each suggestion would
  /// leave: computed from the members above. Pure.
  [[nodiscard]] CHUNKIO_EXPORT BottleneckReport bottleneck() const;

  /// What was counted after `earlier`: figures of the last thousand steps, say, or without the time
  /// that the first batch took. \pre `earlier` are statistics of the same loader or epoch.
  [[nodiscard]] CHUNKIO_EXPORT LoaderStats since(const LoaderStats& earlier) const;

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

/// A run of rows that OnError::skip skipped.
struct SkippedRows {
  std::int64_t first_row = 0;  ///< In the file.
  std::int64_t num_rows = 0;   ///< Damaged ones, wanted or not.
  /// How many of them the loader would deliver in an epoch (all, without a selection): what
  /// LoaderStats::skipped_images counts for them, unless their row group is cut between lanes or
  /// ranks or comes in several reads (random order). >= 1.
  std::int64_t num_selected = 0;
  std::string reason = {};
};

/// As JSON on one line, without its end: an object, and an array of objects. Keys are named after
/// the members and stay; more may come. Text that is not UTF-8 has U+FFFD in place of each wrong
/// byte. Pure.
[[nodiscard]] CHUNKIO_EXPORT std::string to_json(const LoaderStats& stats);
[[nodiscard]] CHUNKIO_EXPORT std::string to_json(std::span<const SkippedRows> skipped);

/// A place between two batches.
struct LoaderPosition {
  std::int64_t epoch = 0;
  std::int64_t step = 0;  ///< Of the next batch; num_steps() at the end of the epoch.
};

/// The batches of one epoch of a Loader or DeviceLoader, for a range-for loop. Valid while the
/// loader lives.
template <class BatchType>
class EpochRange {
 public:
  using Next = std::function<std::optional<BatchType>()>;

  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = BatchType;
    using difference_type = std::ptrdiff_t;
    using pointer = const BatchType*;
    using reference = const BatchType&;

    reference operator*() const noexcept { return *batch_; }
    pointer operator->() const noexcept { return &*batch_; }
    /// Releases the current batch and waits for the next. \throws Error as next() of the loader.
    Iterator& operator++() {
      batch_.reset();
      batch_ = (*next_)();
      return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const Iterator& it, std::default_sentinel_t) noexcept {
      return !it.batch_.has_value();
    }

   private:
    friend class EpochRange;
    explicit Iterator(const Next* next) : next_(next), batch_((*next)()) {}
    const Next* next_;
    std::optional<BatchType> batch_;
  };

  explicit EpochRange(Next next) : next_(std::move(next)) {}

  /// Waits for the first batch. To be called once. \throws Error as next() of the loader.
  [[nodiscard]] Iterator begin() const { return Iterator(&next_); }
  [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

 private:
  Next next_;
};

/// Reads a dataset epoch by epoch. One thread at a time, except where a member says otherwise.
///
/// A Loader that was moved from can be destroyed and assigned to; every other member throws Error
/// invalid_argument.
///
/// After fork() the child has no workers: there every member that would need them, or wait, throws
/// Error unsupported, batches that were held stay readable, and destructors return without freeing
/// anything. Make a new Loader in the child, of a Dataset opened there. The parent goes on.
class CHUNKIO_EXPORT Loader {
 public:
  /// Reserves memory, reads labels and fields and starts threads. Images are read from the first
  /// start_epoch() on. Blocks on I/O.
  /// \throws Error invalid_argument, not_found (no such field), out_of_resources (memory.budget
  ///         below the minimum, which the message names), unsupported (the chosen source cannot
  ///         read this file), io_failed, hdf5_failed.
  Loader(Dataset dataset, LoaderOptions options);
  /// A loader that continues from `state`, which another loader's state() returned, maybe with
  /// another world_size: batch_size, order.window_bytes, order.lanes and order.version are taken
  /// from the state, so that the global batches are identical; world_size must divide the lanes.
  /// Everything else of `options` must agree with the state. \throws Error invalid_argument (not a
  /// state; another file, seed or option: the message names
  ///         the difference), and as the constructor.
  static Loader resume(Dataset dataset, LoaderOptions options, std::string_view state);
  Loader(Loader&&) noexcept;
  Loader& operator=(Loader&&) noexcept;
  /// Stops and joins the workers. Never blocks longer than the reads in flight.
  ~Loader();

  /// Goes to the start of an epoch (0 to 2^62) and returns its batches. An epoch that was
  /// prefetched goes on without a gap; what is left of an earlier one is dropped. May wait for
  /// reads in flight. \throws Error invalid_argument (epoch out of range), and what next() throws
  /// after a worker failed.
  [[nodiscard]] EpochRange<Batch> epoch(std::int64_t epoch) &;
  /// The range needs a Loader that lives as long.
  EpochRange<Batch> epoch(std::int64_t epoch) && = delete;
  /// The same, for callers of next().
  void start_epoch(std::int64_t epoch);
  /// The next batch, or nothing at the end of the epoch. Blocks until it is complete. With
  /// Uneven::exact, ranks may differ in their numbers of steps, and a rank that waits for the
  /// others after each batch (all-reduce) then never ends; pad and drop give all the same number.
  /// \param stop     requested: next() ends its wait, within 50 ms.
  /// \param timeout  the longest wait; 0 takes a batch that is ready.
  /// \throws Error cancelled (`stop`), timed_out (`timeout`, or max_held batches are still held
  ///         after release_timeout_seconds) and what on_wait throws: nothing is lost then, and the
  ///         next call goes on waiting. Or whatever a worker met: io_failed, corrupt_data,
  ///         digest_mismatch, hdf5_failed, unsupported, which every later call throws again.
  [[nodiscard]] std::optional<Batch> next(const std::stop_token& stop = {},
                                          std::chrono::nanoseconds timeout = kForever);

  /// Where the loader stands: a short JSON text that counts the batches handed out, not those
  /// prefetched. It names the contents of the file by a fingerprint, never a path or time. Equal on
  /// all ranks that have called next() equally often; with Uneven::exact, where a rank may have one
  /// batch less than another, the call that finds nothing counts.
  /// \throws Error io_failed, hdf5_failed, corrupt_data: the first state of a third-party file
  ///         reads three images, and they cannot be read.
  [[nodiscard]] std::string state() const;
  /// The state that belongs to `position`, wherever the loader stands: for programs that count the
  /// batches they really used. Any thread.
  /// \param ended  whether next() would have said by then that the epoch is over, if the step is
  ///               num_steps(): see state().
  /// \pre 0 <= position.step <= num_steps(). \throws Error as state().
  [[nodiscard]] std::string state_at(const LoaderPosition& position, bool ended) const;
  /// Goes to the place of `state`. Until a batch was asked for, start_epoch() or epoch() of the
  /// epoch in it continues there instead of at its start; so does next(). The loader must have the
  /// same order: `memory` and `io` may differ, and so may ranks if the lanes and the global batch
  /// are equal.
  /// \throws Error invalid_argument (not a state; another file, seed or option: the message names
  ///         the difference).
  void restore(std::string_view state);
  /// The next batch, as epoch and step.
  [[nodiscard]] LoaderPosition position() const;

  /// Batches and samples of an epoch, the same for every epoch.
  [[nodiscard]] std::int64_t num_steps() const;
  [[nodiscard]] std::int64_t samples_per_epoch() const;

  /// Since construction. Safe to call at any time, from any thread.
  [[nodiscard]] LoaderStats stats() const;
  /// Of one epoch; exact once the epoch has been drained. Zeros for one that was not touched, or
  /// was not among the last eight that the consumer was in. An epoch begun again counts anew.
  [[nodiscard]] LoaderStats epoch_stats(std::int64_t epoch) const;

  /// Runs of rows that OnError::skip skipped since construction, ascending, each row once, at most
  /// 10,000 runs, with the reason of the first time (at most 512 bytes). Any thread.
  [[nodiscard]] std::vector<SkippedRows> skipped() const;

  [[nodiscard]] const LoaderOptions& options() const;
  [[nodiscard]] const Dataset& dataset() const;
  /// The source in use, and why (one line). With SourceKind::automatic it may change in the first
  /// epochs, while several are tried on what is delivered; the reason then says what was measured.
  /// Any thread.
  [[nodiscard]] SourceKind source() const;
  [[nodiscard]] std::string source_reason() const;
  /// W and k of the order, and how many row groups there are.
  [[nodiscard]] std::int64_t window_groups() const;
  [[nodiscard]] const RowGroups& row_groups() const;
  /// Bytes reserved, <= memory.budget.
  [[nodiscard]] std::int64_t memory_bytes() const;
  [[nodiscard]] std::int64_t num_threads() const;

 private:
  friend struct internal::Access;
  struct Impl;
  /// \throws Error invalid_argument: it was moved from.
  [[nodiscard]] Impl& impl() const;
  std::unique_ptr<Impl> impl_;
};

}  // namespace chunkio
