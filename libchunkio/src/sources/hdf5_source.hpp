/// Reads through libhdf5: everything it can read, one call at a time.
///
/// For filtered data, chunks that cut samples and chunks that lie anywhere. Rows are read in runs
/// into scratch memory under the library's lock, and go to their places outside of it. Where
/// libhdf5 must read whole chunks, its chunk cache holds two row groups
/// (StoredArray::chunk_cache_bytes), so that each chunk is decoded once for each read of its
/// group.
#pragma once

#include <memory>
#include <mutex>

#include <chunkio/dataset.hpp>

#include "base/buffer_pool.hpp"
#include "base/chunk_source.hpp"
#include "h5/dataset_impl.hpp"

namespace chunkio::sources {

/// h5::read_rows() through `bytes`, which are those of `file`. \returns what its reads took.
/// \throws Error as that, and what `bytes` throws.
ReadTime read_rows_through(const ByteSource& bytes, const Dataset::Impl& file,
                           const h5::StoredArray& array, std::int64_t first, std::int64_t count,
                           std::span<std::byte> out, const std::stop_token& stop);

class Hdf5Source final : public ChunkSource {
 public:
  /// \param group_samples  rows in a full row group, >= 1.
  /// \param bytes  of `file`, as they are to be read.
  Hdf5Source(std::shared_ptr<const Dataset::Impl> file,
             std::shared_ptr<const h5::StoredArray> array, std::shared_ptr<const ByteSource> bytes,
             std::int64_t group_samples,
             std::shared_ptr<base::BufferPool> scratch = std::make_shared<base::BufferPool>());

  ReadCost place(const RowGroup& group, std::span<const RowTarget> rows,
                 std::stop_token stop) const override;
  [[nodiscard]] std::int64_t memory_bytes(std::int64_t threads) const noexcept override;

 private:
  /// Reads the rows from rows.front() to rows.back() in one call, and places them.
  /// Rows of a chunk, or of the dataset.
  [[nodiscard]] std::int64_t chunk_rows() const noexcept;
  /// The rows of one run chunk by chunk, after `error`, which is being handled, was met: so that
  /// only those of damaged chunks are lost.
  void place_each(const RowGroup& group, std::span<const RowTarget> rows,
                  std::span<std::byte> scratch, const std::stop_token& stop, ReadCost& cost,
                  const Error& error, Damage& damage) const;
  void place_run(const RowGroup& group, std::span<const RowTarget> rows,
                 std::span<std::byte> scratch, const std::stop_token& stop, ReadCost& cost) const;

  std::shared_ptr<const Dataset::Impl> file_;
  std::shared_ptr<const h5::StoredArray> array_;
  std::shared_ptr<const ByteSource> bytes_;
  std::int64_t scratch_rows_;
  /// Taken for groups that need several reads of cached chunks: more groups at a time than the
  /// cache holds would decode each chunk again and again. Taken before Library::lock().
  mutable std::mutex large_group_mutex_;
  std::shared_ptr<base::BufferPool> scratch_;
};

}  // namespace chunkio::sources
