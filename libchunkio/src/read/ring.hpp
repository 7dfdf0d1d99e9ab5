/// The fixed pool of batch buffers that is the shuffle buffer and the prefetch queue at once.
///
/// Rows arrive in their final place, so nothing is copied between "reading" and "batch". A slot is
/// free, being filled, or leased to the consumer. The ring is shared by the loader and by every
/// lease, so that a batch outlives its loader; it also owns the one mutex under which loader state
/// changes (see WindowReader), which makes returning a lease and waking a worker one step.
///
/// Fields lie beside the leading array of a slot, each from a cache line on, so that large ones are
/// written with non-temporal stores as that is.
#pragma once

#include <unistd.h>

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <chunkio/dataset.hpp>
#include <chunkio/loader.hpp>
#include <chunkio/tensor.hpp>

#include "base/host_memory.hpp"
#include "base/sparse_layout.hpp"
#include "base/sparse_rows.hpp"

namespace chunkio::read {

/// An array as it lies in every slot.
struct RingField {
  FieldInfo info = {};
  std::size_t row_bytes = 0;
};

/// Of a CSR matrix that leads: slots hold a base::SparseRow for each row, and a batch's memory is
/// laid out when it is handed over.
struct SparseRing {
  std::int64_t columns = 0;
  DType index_dtype = DType::int32;
  std::shared_ptr<base::SparseBlocks> blocks = {};
  std::int64_t mean_row_bytes = 1;
  std::int64_t batch_bytes = 0;  ///< The most that a batch takes.
};

/// What all slots have in common.
struct RingLayout {
  std::int64_t rows = 0;   ///< Samples a slot holds at most.
  RingField leading = {};  ///< Images, or what else leads.
  std::optional<SparseRing> sparse = {};
  bool has_images = true;              ///< What leads are images.
  std::uint64_t seed = 0;              ///< Of the loader: see NormalizeOptions::seed.
  bool has_labels = false;             ///< If so, fields[0] are the labels.
  std::vector<RingField> fields = {};  ///< Labels first, then the fields asked for.
};

/// Of batches of at most `rows` samples of a dataset, without its fields and labels.
[[nodiscard]] RingLayout ring_layout(const DatasetInfo& info, std::int64_t rows);

/// In the place of a number of RingLayout::fields: the array that leads.
inline constexpr std::size_t kLeading = static_cast<std::size_t>(-1);
/// Which array of a batch a name means: a number of RingLayout::fields, or kLeading. Names in the
/// file come first, then "images", if images lead, and "labels".
/// \throws Error not_found, which lists the names that there are.
[[nodiscard]] std::size_t find_array(const RingLayout& layout, std::string_view name);

class Ring;

}  // namespace chunkio::read

namespace chunkio::internal {

/// One buffer of the ring. Written by the loader's workers while it is being filled, read-only
/// while leased.
class BatchSlot {
 public:
  /// In the place of a sample id: this row was skipped.
  static constexpr std::int64_t kSkipped = -1;

  const read::RingLayout* layout = nullptr;
  /// As `index`: in memory of its own.
  static constexpr std::int64_t kNoRing = -1;
  std::int64_t index = kNoRing;  ///< Within the ring.
  std::byte* leading = nullptr;
  std::int64_t* sample_ids = nullptr;
  std::span<std::byte* const> fields = {};  ///< As RingLayout::fields.
  // Of a CSR matrix, while leased.
  base::SparseLayout sparse = {};
  base::HostBuffer sparse_memory = {};

  std::int64_t rows = 0;
  std::int64_t epoch = 0;
  std::int64_t step = 0;
  bool touched = false;  ///< Its pages exist: see Ring::touch().

  /// Moves rows up over those that were skipped, and returns how many there were.
  std::int64_t close_gaps() noexcept;
  /// Rows of a CSR matrix. \pre close_gaps() was called, if rows were skipped.
  [[nodiscard]] std::span<const base::SparseRow> sparse_rows() const noexcept {
    return {reinterpret_cast<const base::SparseRow*>(leading), static_cast<std::size_t>(rows)};
  }
};

}  // namespace chunkio::internal

namespace chunkio::read {

/// A batch in memory of its own, which outlives the ring: for consumers that hold more than there
/// are slots for.
class OwnBatch {
 public:
  /// Room for a batch. \throws Error out_of_resources, std::bad_alloc.
  explicit OwnBatch(std::shared_ptr<const RingLayout> layout);
  OwnBatch(const OwnBatch&) = delete;
  OwnBatch& operator=(const OwnBatch&) = delete;

  /// Takes the memory of a CSR matrix from it, and copies the rest.
  void fill(internal::BatchSlot& from) noexcept;
  [[nodiscard]] const internal::BatchSlot& slot() const noexcept { return slot_; }

 private:
  std::shared_ptr<const RingLayout> layout_;
  base::HostBuffer leading_;
  base::HostBuffer side_;
  std::vector<std::byte*> fields_;
  internal::BatchSlot slot_;
};

class Ring : public std::enable_shared_from_this<Ring> {
 public:
  /// \throws Error out_of_resources.
  Ring(RingLayout layout, std::int64_t num_slots);
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  /// Bytes a ring takes: the batches, and what it keeps of each slot.
  [[nodiscard]] static std::int64_t footprint(const RingLayout& layout, std::int64_t num_slots);

  /// Whether this is the process that made the ring, not a child forked from it: there the workers
  /// do not exist, and a mutex that one of them held stays locked.
  [[nodiscard]] bool in_own_process() const noexcept { return ::getpid() == process_; }

  [[nodiscard]] const RingLayout& layout() const noexcept { return *layout_; }
  /// Room for a batch outside of the ring. \throws Error out_of_resources, std::bad_alloc.
  [[nodiscard]] std::shared_ptr<OwnBatch> make_own() const {
    return std::make_shared<OwnBatch>(layout_);
  }
  /// The memory of all batches, to be page-locked: whole pages of what leads, and of all else.
  [[nodiscard]] std::array<std::span<std::byte>, 2> memory() const noexcept {
    return {whole_pages(leading_), whole_pages(side_)};
  }
  [[nodiscard]] internal::BatchSlot& slot(std::int64_t index) noexcept {
    return slots_[static_cast<std::size_t>(index)];
  }

  /// Guards everything below and the state of the WindowReader.
  [[nodiscard]] std::mutex& mutex() noexcept { return mutex_; }
  /// Notified when a slot becomes free and when the WindowReader has work.
  [[nodiscard]] std::condition_variable& work_available() noexcept { return work_available_; }

  // The mutex is held by the caller of these.
  [[nodiscard]] std::int64_t num_free() const noexcept {
    return static_cast<std::int64_t>(free_.size());
  }
  [[nodiscard]] std::int64_t num_leased() const noexcept { return num_leased_; }
  [[nodiscard]] std::int64_t take_free();
  void put_back(std::int64_t index) { free_.push_back(index); }
  /// Whether all of the next `count` slots that take_free() gives were touched.
  /// \pre count <= num_free().
  [[nodiscard]] bool next_are_touched(std::int64_t count) const noexcept;
  /// The first of them that was not, to be touched and put back. \pre !next_are_touched(count).
  [[nodiscard]] std::int64_t take_untouched();

  /// Has the kernel make the pages of a slot that nobody else uses, which takes longer than copying
  /// rows into them; it happens once. Without the mutex.
  void touch(std::int64_t index) noexcept;

  /// Makes the CSR matrix of the batch out of what its rows were read to, which is given back.
  /// Without the mutex. \pre the slot is complete, and nobody else works with it.
  /// \throws Error out_of_resources, unsupported (more values than its columns' type counts).
  void assemble(internal::BatchSlot& slot);
  /// Gives up the rows of a CSR matrix that were not handed over. \pre no source works.
  void drop_rows() noexcept {
    if (layout_->sparse) layout_->sparse->blocks->release_all();
  }

  /// Hands a filled slot to the consumer; the slot returns by itself when the last copy is gone.
  /// Mutex held.
  [[nodiscard]] std::shared_ptr<const internal::BatchSlot> lease(std::int64_t index);

 private:
  static std::span<std::byte> whole_pages(const base::HostBuffer& buffer) noexcept {
    return {buffer.data(), base::HostBuffer::footprint(buffer.size())};
  }
  void return_lease(std::int64_t index) noexcept;

  const ::pid_t process_ = ::getpid();
  std::shared_ptr<const RingLayout> layout_;
  base::HostBuffer leading_;
  base::HostBuffer side_;
  std::vector<std::byte*> fields_;  // BatchSlot::fields of all slots
  std::vector<internal::BatchSlot> slots_;

  std::mutex mutex_;
  std::condition_variable work_available_;
  std::vector<std::int64_t> free_;
  std::int64_t num_leased_ = 0;
  std::vector<base::HostBuffer> spare_;  // of CSR matrices; by the mutex, too
};

}  // namespace chunkio::read
