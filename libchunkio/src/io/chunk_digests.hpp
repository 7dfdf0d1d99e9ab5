/// Chunks of the pictures, read whole and compared with their digests (format.md): filters are
/// undone before.
///
/// Thread-safe; keeps one scratch buffer for each caller at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>

#include <chunkio/dataset.hpp>

#include "base/buffer_pool.hpp"
#include "base/chunk_source.hpp"
#include "h5/dataset_impl.hpp"
#include "io/filtered_chunk.hpp"
#include "io/range_reader.hpp"

namespace chunkio::io {

class ChunkDigests {
 public:
  /// Why the digests of `file` cannot be compared, as a clause ("it has no digests"); empty if they
  /// can.
  [[nodiscard]] static std::string why_not(const Dataset::Impl& file);

  /// \param direct_io  go round the page cache if the file system allows it.
  /// \pre why_not(*file) is empty.
  ChunkDigests(std::shared_ptr<const Dataset::Impl> file, bool direct_io,
               std::shared_ptr<base::BufferPool> scratch = std::make_shared<base::BufferPool>());

  /// Takes a piece of a chunk, which begins at byte `at` of it.
  using Take = std::function<void(std::span<const std::byte> piece, std::int64_t at)>;

  /// Reads one chunk piece by piece (in one, if it is filtered) and gives each piece to `take`
  /// while it is in the processor's cache; nothing of it is to be believed before check() returned.
  /// \throws Error digest_mismatch, io_failed, corrupt_data, unsupported (it overlaps another),
  ///         hdf5_failed, out_of_resources, cancelled (`stop` requested).
  void check(std::int64_t chunk, const std::stop_token& stop, PlaceCost& cost,
             const Take& take) const;

  /// Bytes of a whole chunk.
  [[nodiscard]] std::int64_t chunk_bytes() const noexcept { return chunk_bytes_; }
  /// Bytes of scratch memory that `threads` concurrent callers take.
  [[nodiscard]] std::int64_t memory_bytes(std::int64_t threads) const noexcept;

 private:
  [[nodiscard]] h5::ChunkEntry find(std::int64_t chunk) const;
  [[nodiscard]] std::uint64_t read_pieces(const h5::ChunkEntry& entry, ChunkScratch& scratch,
                                          const std::stop_token& stop, PlaceCost& cost,
                                          const Take& take) const;
  [[nodiscard]] std::uint64_t read_filtered(std::int64_t chunk, const h5::ChunkEntry& entry,
                                            ChunkScratch& scratch, PlaceCost& cost,
                                            const Take& take) const;

  std::shared_ptr<const Dataset::Impl> file_;
  RangeReader reader_;
  std::int64_t chunk_bytes_;
  std::int64_t piece_bytes_;  // read at a time
  ChunkScratchSizes scratch_sizes_;
  std::shared_ptr<base::BufferPool> scratch_;
};

}  // namespace chunkio::io
