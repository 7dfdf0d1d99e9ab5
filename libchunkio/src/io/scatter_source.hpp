/// Positional reads of whole runs of rows, without libhdf5 and without its lock.
///
/// For files whose rows lie in one unfiltered run (Dataset::Impl::linear_offset). A row group is
/// read in pieces that stay in the second-level cache, and from there rows go to their places with
/// non-temporal stores: each byte crosses the memory bus once on its way in and once on its way
/// out. Ordinary stores would first fetch each line of the batch: with them the same loop reached
/// 0.7 instead of 1.0 times a parallel memcpy (libchunkio/doc/architecture.md).
#pragma once

#include <memory>

#include <chunkio/dataset.hpp>

#include "base/chunk_source.hpp"
#include "h5/dataset_impl.hpp"

namespace chunkio::io {

class ScatterSource final : public ChunkSource {
 public:
  /// \pre dataset->linear_offset.
  explicit ScatterSource(std::shared_ptr<const Dataset::Impl> dataset);

  PlaceCost place(const RowGroup& group, std::span<const RowTarget> rows,
                  std::stop_token stop) const override;
  [[nodiscard]] std::int64_t memory_bytes(std::int64_t threads) const noexcept override;

 private:
  /// Reads the rows `rows`, which lie close together, in one sweep.
  std::int64_t place_run(std::int64_t first_row, std::span<const RowTarget> rows,
                         std::stop_token stop) const;

  std::shared_ptr<const Dataset::Impl> dataset_;
  std::int64_t sample_bytes_;
};

}  // namespace chunkio::io
