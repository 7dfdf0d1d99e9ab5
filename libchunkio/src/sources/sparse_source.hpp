/// Rows of a CSR matrix: reads runs of them to blocks, and tells each target where its row lies.
///
/// Targets are base::SparseRow. Offsets are read with each row group, so they take no memory that
/// grows with the rows.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

#include "base/buffer_pool.hpp"
#include "base/chunk_source.hpp"
#include "base/sparse_rows.hpp"
#include "h5/sparse_matrix.hpp"
#include "sources/element_reader.hpp"

namespace chunkio::sources {

/// How many numbers there are of which size, in constant memory: those below 2^7 one by one, larger
/// ones in classes that differ by less than 1/64.
class SizeCounts {
 public:
  /// \param value  >= 0.
  void add(std::int64_t value) noexcept {
    Class& one = classes_[class_of(value)];
    ++one.count;
    one.sum += value;
    one.largest = std::max(one.largest, value);
  }
  /// No less than the sum of the `count` largest, and hardly more.
  [[nodiscard]] std::int64_t largest_sum(std::int64_t count) const noexcept {
    std::int64_t sum = 0;
    for (std::size_t i = classes_.size(); i-- > 0 && count > 0;) {
      const Class& one = classes_[i];
      sum += one.count <= count ? one.sum : count * one.largest;
      count -= one.count;
    }
    return sum;
  }

 private:
  static constexpr int kBits = 6;  // of a class, behind the leading one
  struct Class {
    std::int64_t count = 0, sum = 0, largest = 0;
  };
  [[nodiscard]] static std::size_t class_of(std::int64_t value) noexcept {
    const auto number = static_cast<std::uint64_t>(value);
    const int shift = std::max(static_cast<int>(std::bit_width(number)) - kBits - 1, 0);
    return (static_cast<std::size_t>(shift) << kBits) + static_cast<std::size_t>(number >> shift);
  }

  std::vector<Class> classes_ = std::vector<Class>(std::size_t{64 - kBits + 1} << kBits);
};

/// How many entries the rows of all files have, and their row groups.
struct SparseExtents {
  SizeCounts rows;
  SizeCounts groups;
};

class SparseSource final : public ChunkSource {
 public:
  /// Reads the offsets of all rows once, to check them and to count `extents`. Blocks on storage.
  /// \param bytes   of the file. \param scratch  shared by what is read together.
  /// \param blocks  what rows are read to; of all files. \param verify  compare rows with digests.
  /// \throws Error corrupt_data, io_failed, hdf5_failed, out_of_resources.
  SparseSource(std::shared_ptr<const Dataset::Impl> file, std::shared_ptr<const ByteSource> bytes,
               std::shared_ptr<base::BufferPool> scratch, std::int64_t group_samples,
               std::shared_ptr<base::SparseBlocks> blocks, SparseExtents& extents, bool verify);

  /// \throws DamagedRows, too: rows that alone cannot be read, are damaged, or do not match.
  ReadCost place(const RowGroup& group, std::span<const RowTarget> rows,
                 std::stop_token stop) const override;
  [[nodiscard]] std::unique_ptr<const ByteSource> prefetch(
      const RowGroup& group, const RowRange& wanted) const noexcept override;
  /// Without the blocks.
  [[nodiscard]] std::int64_t memory_bytes(std::int64_t threads) const noexcept override;

  /// Bytes that all blocks take at most.
  /// \param values  in flight. \param runs  of adjacent rows. \param blocks  one a group read.
  /// \param whole_pages  are read.
  [[nodiscard]] static std::int64_t block_bytes(const h5::SparseMatrix& matrix, std::int64_t values,
                                                std::int64_t runs, std::int64_t blocks,
                                                bool whole_pages);
  /// Rows that are not wanted are read if there are at most so many times as many entries as
  /// wanted.
  static constexpr std::int64_t kMostRead = 4;

 private:
  /// \pre there are rows.
  ReadCost place_together(const RowGroup& group, std::span<const RowTarget> rows,
                          const std::stop_token& stop) const;
  /// Adjacent rows, or with others between them that are read, too.
  struct Run {
    std::int64_t first = 0;                      ///< Row in the file.
    std::span<const std::int64_t> offsets = {};  ///< Of it and those behind it, and the end.
    std::span<const RowTarget> rows = {};        ///< May be wanted more than once.

    [[nodiscard]] std::int64_t num_entries() const noexcept {
      return offsets.back() - offsets.front();
    }
  };
  [[nodiscard]] std::size_t room_of(const Run& run) const noexcept;
  void place_run(const Run& run, const RowGroup& group, std::span<std::byte> room,
                 base::SparseBlock& block, const std::stop_token& stop, ReadCost& cost) const;

  /// Which of the rows, all of them placed, do not match.
  [[nodiscard]] std::vector<RowRange> mismatches(const RowGroup& group,
                                                 std::span<const RowTarget> rows,
                                                 const std::stop_token& stop, ReadCost& cost) const;

  std::shared_ptr<const Dataset::Impl> file_;
  const h5::SparseMatrix& matrix_;
  std::shared_ptr<const ByteSource> bytes_;
  std::shared_ptr<base::BufferPool> scratch_;
  std::shared_ptr<base::SparseBlocks> blocks_;
  ElementReader offsets_;
  ElementReader indices_;
  ElementReader values_;
  std::optional<ElementReader> digests_;  // absent: nothing is compared
  bool indices_first_;                    // in the file
  std::int64_t group_samples_;
  std::vector<std::int64_t> group_offsets_;  // of the first row of each group, and the end
};

}  // namespace chunkio::sources
