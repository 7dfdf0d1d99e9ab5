/// Puts the rows of one group read where they belong in the batches of a window.
///
/// Ids and cached fields are written here; of each streamed array a source gets a target for each
/// row, and writes it there, so that a row is copied once.
///
/// Thread safety: immutable once made, so nothing here is guarded. The thread of a group read alone
/// writes the rows that it wants: fill() and mark_skipped() take no lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

#include <chunkio/epoch_order.hpp>

#include "base/chunk_source.hpp"
#include "plan/window_plan.hpp"
#include "read/ring.hpp"

namespace chunkio::read {

/// What the sources of the streamed arrays returned of rows that were prefetched; empty if that is
/// nothing.
using Prefetched = std::vector<std::unique_ptr<const ByteSource>>;

/// An array that is read row group by row group: the one that leads, or a large field.
struct StreamedArray {
  std::unique_ptr<ChunkSource> source;
  std::size_t row_bytes = 0;
  std::optional<std::size_t> field = {};  ///< Index in RingLayout::fields; absent: it leads.
};

/// All rows of the labels and small fields, as RingLayout::fields, read once. An empty entry is a
/// streamed field.
using CachedFields = std::vector<std::vector<std::byte>>;

/// Where one lane's rows begin in each batch that a window touches, so that a row costs no look at
/// its BatchSlot.
struct WindowRows {
  std::vector<std::int64_t*> ids;    // of each batch
  std::vector<std::byte*> streamed;  // of each batch of each streamed array
  std::vector<std::byte*> cached;    // of each batch of each cached field
};

class SlotFiller {
  struct RowPlace {
    std::uint32_t offset = 0;  ///< In its row group.
    std::uint32_t batch = 0;   ///< Counted from the first of the window.
    std::uint32_t row = 0;     ///< In the lane's rows of that batch.
  };

 public:
  /// What a worker has for itself, reused by its next group read.
  class Scratch {
   public:
    explicit Scratch(const RowGroups& groups);

   private:
    friend SlotFiller;
    std::vector<RowPlace> places_;
    std::vector<RowTarget> targets_;      // of one array at a time
    std::vector<std::uint32_t> offsets_;  // of a selection
  };

  /// Keeps `groups`.
  /// \param arrays  read one after the other at each group read.
  SlotFiller(const RowGroups& groups, std::vector<StreamedArray> arrays, CachedFields fields,
             const RingLayout& layout, std::int64_t lane_batch);

  /// Bytes that `num_threads` workers take as Scratch.
  [[nodiscard]] static std::int64_t footprint(const RowGroups& groups, std::int64_t num_threads);

  [[nodiscard]] const std::vector<StreamedArray>& arrays() const noexcept { return arrays_; }
  /// Bytes of a row of all streamed arrays.
  [[nodiscard]] std::int64_t streamed_row_bytes() const noexcept { return streamed_row_bytes_; }

  /// Makes room for `num_batches` batches in `rows`.
  void resize(WindowRows& rows, std::size_t num_batches) const;
  /// Says where the lane's rows begin in batch number `batch` of the window: at `first_row` of
  /// `slot`.
  void point_at(WindowRows& rows, std::size_t batch, const internal::BatchSlot& slot,
                std::size_t first_row) const;

  /// Says that rows `wanted` of `group` will be read soon: see ChunkSource::prefetch().
  [[nodiscard]] Prefetched prefetch(const RowGroup& group, const RowRange& wanted) const noexcept;
  /// Does `read`, of which `group` are the rows. Blocks on storage.
  /// \param rows  of the window of `plan`.
  /// \param prefetched  what prefetch() returned for it.
  /// \param cost  what the sources count is added to it, also if one of them throws.
  /// \throws what ChunkSource::place() does; DamagedRows after the rows of all arrays were placed.
  void fill(const plan::WindowPlan& plan, const WindowRows& rows, const plan::GroupRead& read,
            const RowGroup& group, const Prefetched& prefetched, Scratch& scratch,
            const std::stop_token& stop, ReadCost& cost) const;
  /// Marks rows `skipped` of the dataset as such, as far as the group read that fill() has just
  /// failed at wants them. \returns whether it wants any.
  [[nodiscard]] bool mark_skipped(const WindowRows& rows, const RowGroup& group,
                                  std::span<const RowRange> skipped, const Scratch& scratch) const;

 private:
  struct CachedField {
    std::size_t field = 0;  // in RingLayout::fields
    std::size_t row_bytes = 0;
    const std::byte* values = nullptr;
  };

  void find_places(const plan::WindowPlan& plan, const plan::GroupRead& read,
                   Scratch& scratch) const;
  void fill_ids(const WindowRows& rows, std::int64_t first_row, const Scratch& scratch) const;
  void fill_cached(const WindowRows& rows, std::int64_t first_row, const Scratch& scratch) const;
  void find_targets(const WindowRows& rows, std::size_t array, Scratch& scratch) const;

  const RowGroups& groups_;
  const std::vector<StreamedArray> arrays_;
  const CachedFields fields_;
  std::vector<CachedField> cached_;
  std::int64_t streamed_row_bytes_ = 0;
  std::int64_t lane_batch_ = 0;
};

}  // namespace chunkio::read
