/// Compares stored chunks with their digests (format.md) before their rows are believed.
///
/// Wraps another source. A chunk that is to be compared is read whole, also where only some of its
/// rows are wanted, and hashed on its way to the batch: the bytes that are hashed are those that
/// are delivered. Only chunks that need no comparison (any more) come from the wrapped source. A
/// chunk that does not match is read again when its rows are wanted again.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <vector>

#include <chunkio/dataset.hpp>
#include <chunkio/loader.hpp>

#include "base/chunk_source.hpp"
#include "h5/dataset_impl.hpp"
#include "sources/chunk_digests.hpp"

namespace chunkio::sources {

class VerifyingSource final : public ChunkSource {
 public:
  /// Of the images of `file`.
  /// \param verify     first_epoch: a chunk that matched is not hashed again.
  /// \param source     reads the same images. \param bytes  of `file`, as they are to be read.
  /// \throws Error unsupported if the file has no digests, or (version 1) its chunks are not stored
  ///         as they were when the digests were taken; corrupt_data if it lacks a dataset that the
  ///         digests cover.
  VerifyingSource(std::shared_ptr<const Dataset::Impl> file, Verify verify,
                  std::unique_ptr<ChunkSource> source, std::shared_ptr<const ByteSource> bytes,
                  std::shared_ptr<base::BufferPool> scratch = std::make_shared<base::BufferPool>());

  /// \throws DamagedRows, too.
  ReadCost place(const RowGroup& group, std::span<const RowTarget> rows,
                 std::stop_token stop) const override;
  [[nodiscard]] std::unique_ptr<const ByteSource> prefetch(
      const RowGroup& group, const RowRange& wanted) const noexcept override {
    return source_->prefetch(group, wanted);
  }
  [[nodiscard]] std::int64_t memory_bytes(std::int64_t threads) const noexcept override;

 private:
  /// Places `rows` of `group`, all of them in `chunk`.
  void place_checked(std::int64_t chunk, const RowGroup& group, std::span<const RowTarget> rows,
                     const std::stop_token& stop, ReadCost& cost) const;

  std::shared_ptr<const Dataset::Impl> file_;
  Verify verify_;
  std::unique_ptr<ChunkSource> source_;
  ChunkDigests digests_;
  /// Of each chunk: whether it matched once. Two threads may find out at once; that is harmless.
  mutable std::vector<std::atomic<bool>> matched_;
};

}  // namespace chunkio::sources
