/// Positional reads of whole runs of rows, without libhdf5 and without its lock.
///
/// For unfiltered arrays of whole rows, in one run or chunk by chunk (row_extents.hpp). Rows are
/// read in pieces and go to their places from the cache (row_sweep.hpp).
#pragma once

#include <cstddef>
#include <memory>

#include <chunkio/byte_source.hpp>
#include <chunkio/dataset.hpp>

#include "base/buffer_pool.hpp"
#include "base/chunk_source.hpp"
#include "h5/dataset_impl.hpp"

namespace chunkio::sources {

class ScatterSource final : public ChunkSource {
 public:
  /// \param bytes  of `file`, as they are to be read.
  /// \pre why_no_row_extents(*array) is empty.
  ScatterSource(std::shared_ptr<const Dataset::Impl> file,
                std::shared_ptr<const h5::StoredArray> array,
                std::shared_ptr<const ByteSource> bytes,
                std::shared_ptr<base::BufferPool> scratch = std::make_shared<base::BufferPool>());

  ReadCost place(const RowGroup& group, std::span<const RowTarget> rows,
                 std::stop_token stop) const override;
  [[nodiscard]] std::unique_ptr<const ByteSource> prefetch(
      const RowGroup& group, const RowRange& wanted) const noexcept override;
  [[nodiscard]] std::int64_t memory_bytes(std::int64_t threads) const noexcept override;

 private:
  std::shared_ptr<const Dataset::Impl> file_;
  std::shared_ptr<const h5::StoredArray> array_;
  std::shared_ptr<const ByteSource> bytes_;
  std::size_t scratch_bytes_;
  std::shared_ptr<base::BufferPool> scratch_;
};

}  // namespace chunkio::sources
