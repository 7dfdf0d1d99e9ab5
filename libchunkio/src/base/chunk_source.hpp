/// The contract between whoever knows where samples go and whoever can fetch them.
///
/// Data flow: window plan -> ChunkSource::place -> rows of ring slots. One implementation for each
/// way of reading a file; a conformance suite (tests/unit/chunk_source_test.cpp) runs over all of
/// them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stop_token>

namespace chunkio {

/// One wanted sample and where it goes.
struct RowTarget {
  std::uint32_t row = 0;        ///< Within the row group.
  std::byte* target = nullptr;  ///< sample_bytes writable bytes.
};

/// A run of rows that is loaded together.
struct RowGroup {
  std::int64_t first_row = 0;  ///< Row in the dataset.
  std::int64_t num_rows = 0;
};

/// What one place() cost.
struct PlaceCost {
  std::int64_t bytes_read = 0;  ///< Raw picture bytes asked of the file.
};

/// Brings the rows of one row group to their places in batch buffers.
class ChunkSource {
 public:
  virtual ~ChunkSource() = default;

  /// Writes each wanted row of `group` to its target, once. May be called concurrently.
  ///
  /// \param group  lies inside the dataset.
  /// \param rows   ascending by row, targets disjoint; a row may be wanted more than once.
  /// \throws Error io_failed (with errno), corrupt_data (the file ends early), hdf5_failed,
  ///         cancelled (`stop` requested); targets are unspecified after a throw.
  /// Blocks on storage. Ends with a store fence: the rows are visible to any thread that is told of
  /// the return.
  virtual PlaceCost place(const RowGroup& group, std::span<const RowTarget> rows,
                          std::stop_token stop) const = 0;

  /// Bytes this source allocates for `threads` concurrent callers; part of the memory budget.
  [[nodiscard]] virtual std::int64_t memory_bytes(std::int64_t threads) const noexcept = 0;
};

}  // namespace chunkio
