/// Chunks of the images, read whole and compared with their digests (format.md): filters are
/// undone before.
///
/// Files of version 1 have a digest for each chunk that they were packed in. Later ones have a
/// digest for each sample, so that it does not matter how they are stored: images without chunks,
/// or which libhdf5 alone can read, are compared in pieces, which are called chunks here, too.
///
/// Thread-safe; keeps one scratch buffer for each caller at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include <chunkio/dataset.hpp>
#include <chunkio/epoch_order.hpp>

#include "base/buffer_pool.hpp"
#include "base/chunk_source.hpp"
#include "base/digest.hpp"
#include "h5/dataset_impl.hpp"
#include "io/range_reader.hpp"
#include "sources/filtered_chunk.hpp"
#include "sources/sample_digests.hpp"

namespace chunkio::sources {

class ChunkDigests {
 public:
  /// Why the digests of `file` cannot be compared, as a clause ("it has no digests"); empty if they
  /// can.
  [[nodiscard]] static std::string why_not(const Dataset::Impl& file);

  /// \param bytes  of `file`, as they are to be read.
  /// \pre why_not(*file) is empty.
  /// \throws Error corrupt_data if the file lacks a dataset that its digests cover.
  ChunkDigests(std::shared_ptr<const Dataset::Impl> file, std::shared_ptr<const ByteSource> bytes,
               std::shared_ptr<base::BufferPool> scratch = std::make_shared<base::BufferPool>());

  /// Takes a piece of a chunk, which begins at byte `at` of it.
  using Take = std::function<void(std::span<const std::byte> piece, std::int64_t at)>;

  /// Reads one chunk piece by piece (in one, if it is filtered) and gives each piece to `take`
  /// while it is in the processor's cache; nothing of it is to be believed before check() returned.
  /// \param prefetched  as RowGroup::prefetched.
  /// \throws DamagedRows, Error io_failed, corrupt_data, unsupported (it overlaps another),
  ///         hdf5_failed, out_of_resources, cancelled (`stop` requested).
  void check(std::int64_t chunk, const ByteSource* prefetched, const std::stop_token& stop,
             ReadCost& cost, const Take& take) const;

  /// Whether `bytes`, of `count` chunks from `first` on as they are stored one behind the other,
  /// match. \pre linear(). \throws Error io_failed, corrupt_data, hdf5_failed, cancelled.
  [[nodiscard]] bool matches(std::int64_t first, std::int64_t count,
                             std::span<const std::byte> bytes, const std::stop_token& stop) const;

  [[nodiscard]] std::int64_t num_chunks() const noexcept { return num_chunks_; }
  /// Rows of a whole chunk.
  [[nodiscard]] std::int64_t chunk_rows() const noexcept { return chunk_rows_; }
  /// Rows of the dataset in that chunk.
  [[nodiscard]] RowRange rows_of(std::int64_t chunk) const noexcept;
  /// Bytes of a whole chunk.
  [[nodiscard]] std::int64_t chunk_bytes() const noexcept { return chunk_bytes_; }
  /// All chunks are stored as they are, one behind the other, and are whole.
  [[nodiscard]] bool linear() const noexcept;
  /// Drops from the page cache what is compared beside the images.
  void drop_from_cache() const noexcept;
  /// Bytes of scratch memory that `threads` concurrent callers take, and of what is kept.
  [[nodiscard]] std::int64_t memory_bytes(std::int64_t threads) const noexcept;

 private:
  class Comparison;

  [[nodiscard]] bool read_by_libhdf5() const noexcept { return !scratch_sizes_; }
  [[nodiscard]] std::string describe(std::int64_t chunk) const;
  [[nodiscard]] h5::ChunkEntry find(std::int64_t chunk) const;
  void read_pieces(const io::RangeReader& reader, std::int64_t chunk, const h5::ChunkEntry& entry,
                   ChunkScratch& scratch, const std::stop_token& stop, ReadCost& cost,
                   Comparison& comparison, const Take& take) const;
  void read_filtered(const io::RangeReader& reader, const h5::ChunkEntry& entry,
                     ChunkScratch& scratch, const std::stop_token& stop, ReadCost& cost,
                     Comparison& comparison, const Take& take) const;
  void read_rows(std::int64_t chunk, const std::stop_token& stop, ReadCost& cost,
                 Comparison& comparison, const Take& take) const;

  std::shared_ptr<const Dataset::Impl> file_;
  std::optional<SampleDigests> samples_;  ///< Absent in version 1.
  std::shared_ptr<const ByteSource> bytes_;
  std::int64_t chunk_rows_;
  std::int64_t chunk_bytes_;
  std::int64_t num_chunks_;
  std::int64_t piece_bytes_;                        // read at a time
  std::optional<ChunkScratchSizes> scratch_sizes_;  // absent where libhdf5 reads
  std::shared_ptr<base::BufferPool> scratch_;
};

}  // namespace chunkio::sources
