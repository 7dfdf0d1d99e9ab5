/// Compares stored chunks with their digests (format.md) before their rows are believed.
///
/// Wraps another source. The stored bytes of a chunk are hashed whole, also where only some of its
/// rows are wanted; they come from the page cache, since the wrapped source has just read them, and
/// do not count as bytes read.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include <chunkio/dataset.hpp>
#include <chunkio/loader.hpp>

#include "base/chunk_source.hpp"
#include "h5/dataset_impl.hpp"

namespace chunkio::io {

class VerifyingSource final : public ChunkSource {
 public:
  /// Of the pictures of `file`.
  /// \param verify  first_epoch: a chunk that matched is not hashed again.
  /// \throws Error unsupported if the file has no digests.
  VerifyingSource(std::shared_ptr<const Dataset::Impl> file, Verify verify,
                  std::unique_ptr<ChunkSource> source);

  /// \throws Error digest_mismatch, too.
  PlaceCost place(const RowGroup& group, std::span<const RowTarget> rows,
                  std::stop_token stop) const override;
  void will_need(const RowGroup& group) const noexcept override { source_->will_need(group); }
  [[nodiscard]] std::int64_t memory_bytes(std::int64_t threads) const noexcept override;

 private:
  void check_chunk(std::int64_t chunk, const std::stop_token& stop) const;

  std::shared_ptr<const Dataset::Impl> file_;
  Verify verify_;
  std::unique_ptr<ChunkSource> source_;
  /// Of each chunk: whether it matched once. Two threads may find out at once; that is harmless.
  mutable std::vector<std::atomic<bool>> matched_;
};

}  // namespace chunkio::io
