/// The part of a row that one chunk holds, where chunks cut rows.
///
/// Problem. A row is an array of shape S, a row of a chunk one of shape C; the chunk at grid
/// position g holds the box [g*C, min((g+1)*C, S)) of the row, as the first elements along each
/// axis of its own row. (HDF5 stores all chunks in full: what lies beyond S is there and means
/// nothing.) Both are row-major. Trailing axes that neither cuts merge: the box is a nest of loops
/// over runs of bytes that lie together on both sides.
///
/// Immutable value; thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <chunkio/tensor.hpp>

namespace chunkio::sources {

class RowPart {
 public:
  /// \param row, chunk_row  shapes without the first axis; same rank, all dimensions >= 1.
  /// \param position        of the chunk in the grid, without the first axis; not beyond the row.
  RowPart(const Shape& row, const Shape& chunk_row, std::span<const std::int64_t> position,
          std::int64_t element_bytes);

  /// Bytes of a row of the chunk, those beyond the dataset included.
  [[nodiscard]] std::int64_t stored_bytes() const noexcept { return stored_bytes_; }

  /// Brings bytes [from, from + stored.size()) of a row of the chunk to their places in `row`.
  /// Uses non-temporal stores: end with base::store_fence().
  void copy(std::byte* row, std::int64_t from, std::span<const std::byte> stored) const noexcept;

  /// Fills the part of `row` with copies of `element`.
  void fill(std::byte* row, std::span<const std::byte> element) const noexcept;

 private:
  /// One loop of the nest.
  struct Level {
    std::int64_t count = 1;
    std::int64_t stored_stride = 0;
    std::int64_t row_stride = 0;
  };
  /// Where something begins, in bytes.
  struct Place {
    std::int64_t stored = 0;
    std::int64_t row = 0;
  };

  /// Where the loop over runs begins in iteration `i` of all loops around it.
  [[nodiscard]] Place outer_place(std::int64_t i) const noexcept;

  std::int64_t stored_bytes_ = 0;
  std::int64_t row_offset_ = 0;  // of the part's first byte in the row
  std::int64_t run_bytes_ = 0;
  Level runs_ = {};                                // the innermost loop
  std::array<Level, Shape::kMaxRank> outer_ = {};  // the loops around it, outermost first
  std::size_t num_outer_ = 0;
  std::int64_t outer_count_ = 1;
};

}  // namespace chunkio::sources
