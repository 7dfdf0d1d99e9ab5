/// Rows of a CSR matrix: reads runs of them to blocks, and tells each target where its row lies.
///
/// Targets are base::SparseRow. Offsets are read with each row group, so they take no memory that
/// grows with the rows.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <queue>
#include <span>
#include <stop_token>
#include <vector>

#include "base/buffer_pool.hpp"
#include "base/chunk_source.hpp"
#include "base/sparse_rows.hpp"
#include "h5/sparse_matrix.hpp"
#include "sources/element_reader.hpp"

namespace chunkio::sources {

/// The sum of the largest of many numbers.
class LargestSum {
 public:
  /// \param count  how many of them; 8 bytes each.
  explicit LargestSum(std::int64_t count) : count_(static_cast<std::size_t>(count)) {}

  void add(std::int64_t value) {
    if (kept_.size() < count_) {
      kept_.push(value);
      sum_ += value;
    } else if (count_ > 0 && value > kept_.top()) {
      sum_ += value - kept_.top();
      kept_.pop();
      kept_.push(value);
    }
  }
  [[nodiscard]] std::int64_t sum() const noexcept { return sum_; }

 private:
  std::size_t count_;
  std::int64_t sum_ = 0;
  std::priority_queue<std::int64_t, std::vector<std::int64_t>, std::greater<>> kept_;
};

/// How many values rows have: what batches and row groups take at most.
struct SparseExtents {
  LargestSum batch_rows;        ///< Of the rows of a batch.
  LargestSum rows_in_flight;    ///< Of all rows that may be read and not yet taken.
  LargestSum groups_in_flight;  ///< Likewise of row groups.
};

class SparseSource final : public ChunkSource {
 public:
  /// Reads the offsets of all rows once, to check them and to add up `extents`. Blocks on storage.
  /// \param bytes   of the file. \param scratch  shared by what is read together.
  /// \param blocks  what rows are read to; of all files.
  /// \throws Error corrupt_data, io_failed, hdf5_failed, out_of_resources.
  SparseSource(std::shared_ptr<const Dataset::Impl> file, std::shared_ptr<const ByteSource> bytes,
               std::shared_ptr<base::BufferPool> scratch, std::int64_t group_samples,
               std::shared_ptr<base::SparseBlocks> blocks, SparseExtents& extents);

  ReadCost place(const RowGroup& group, std::span<const RowTarget> rows,
                 std::stop_token stop) const override;
  [[nodiscard]] std::unique_ptr<const ByteSource> prefetch(
      const RowGroup& group, const RowRange& wanted) const noexcept override;
  /// Without the blocks.
  [[nodiscard]] std::int64_t memory_bytes(std::int64_t threads) const noexcept override;

  /// Bytes that blocks take beside the values that were asked for: those between wanted rows, and
  /// whole pages. \param values  in flight. \param blocks  in flight.
  [[nodiscard]] static std::int64_t block_bytes(const h5::SparseMatrix& matrix, std::int64_t values,
                                                std::int64_t blocks) noexcept;
  /// Rows that are not wanted are read if there are at most so many times as many values as wanted.
  static constexpr std::int64_t kMostRead = 4;

 private:
  void scan(std::int64_t group_samples, SparseExtents& extents);
  /// \param rows     adjacent, ascending; may be wanted more than once.
  /// \param offsets  of row `first` and those behind it.
  void place_run(std::int64_t first, std::span<const std::int64_t> offsets, const RowGroup& group,
                 std::span<const RowTarget> rows, const std::stop_token& stop,
                 ReadCost& cost) const;

  std::shared_ptr<const Dataset::Impl> file_;
  const h5::SparseMatrix& matrix_;
  std::shared_ptr<const ByteSource> bytes_;
  std::shared_ptr<base::BufferPool> scratch_;
  std::shared_ptr<base::SparseBlocks> blocks_;
  ElementReader offsets_;
  ElementReader indices_;
  ElementReader values_;
  bool indices_first_;  // in the file
  std::int64_t group_samples_;
  std::vector<std::int64_t> group_offsets_;  // of the first row of each group, and the end
};

}  // namespace chunkio::sources
