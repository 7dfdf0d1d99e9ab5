/// Positional reads of whole runs of rows, without libhdf5 and without its lock.
///
/// For unfiltered arrays of whole rows, in one run or chunk by chunk (row_extents.hpp). Rows are
/// read in pieces and go to their places from the cache (row_sweep.hpp).
#pragma once

#include <memory>

#include <chunkio/dataset.hpp>

#include "base/buffer_pool.hpp"
#include "base/chunk_source.hpp"
#include "h5/dataset_impl.hpp"
#include "io/range_reader.hpp"
#include "io/read_ahead.hpp"

namespace chunkio::io {

class ScatterSource final : public ChunkSource {
 public:
  /// \param direct_io  bypass the page cache if the file system allows it.
  /// \pre has_row_extents(*array).
  ScatterSource(std::shared_ptr<const Dataset::Impl> file,
                std::shared_ptr<const h5::StoredArray> array, bool direct_io,
                std::shared_ptr<ReadAhead> read_ahead,
                std::shared_ptr<base::BufferPool> scratch = std::make_shared<base::BufferPool>());

  ReadCost place(const RowGroup& group, std::span<const RowTarget> rows,
                 std::stop_token stop) const override;
  void prefetch(const RowGroup& group, const RowRange& wanted) const noexcept override;
  [[nodiscard]] std::int64_t memory_bytes(std::int64_t threads) const noexcept override;

  /// Reads bypass the page cache; false if the file system refused.
  [[nodiscard]] bool direct_io() const noexcept { return reader_.direct(); }

 private:
  std::shared_ptr<const Dataset::Impl> file_;
  std::shared_ptr<const h5::StoredArray> array_;
  RangeReader reader_;
  std::shared_ptr<ReadAhead> read_ahead_;
  std::shared_ptr<base::BufferPool> scratch_;
};

}  // namespace chunkio::io
