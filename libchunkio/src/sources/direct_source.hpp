/// Reads stored chunks without libhdf5, and undoes their filters in parallel.
///
/// For chunked and contiguous data, whatever lies where: filtered chunks are read whole into
/// scratch memory, decoded outside of any lock, and their rows go to their places; of unfiltered
/// ones only the wanted rows are read. Rows that chunks cut are put together from all of them;
/// chunks without storage give the fill value. Small chunks that lie close to each other are read
/// together.
///
/// What is shared with another row group is decoded again for each: groups are meant to be whole
/// chunks (plan), and only fields chunked otherwise than the images are not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/buffer_pool.hpp"
#include "base/chunk_source.hpp"
#include "h5/dataset_impl.hpp"
#include "h5/stored_array.hpp"
#include "io/range_reader.hpp"
#include "sources/filtered_chunk.hpp"
#include "sources/row_part.hpp"

namespace chunkio::sources {

class DirectSource final : public ChunkSource {
 public:
  /// \param file   holds `array`.
  /// \param bytes  of `file`, as they are to be read.
  /// \throws Error unsupported if only libhdf5 can read `array`: the message says why.
  DirectSource(std::shared_ptr<const Dataset::Impl> file,
               std::shared_ptr<const h5::StoredArray> array,
               std::shared_ptr<const ByteSource> bytes,
               std::shared_ptr<base::BufferPool> scratch = std::make_shared<base::BufferPool>());

  /// As the contract says; errors name the chunk, its rows, the dataset and the file.
  ReadCost place(const RowGroup& group, std::span<const RowTarget> rows,
                 std::stop_token stop) const override;
  [[nodiscard]] std::unique_ptr<const ByteSource> prefetch(
      const RowGroup& group, const RowRange& wanted) const noexcept override;
  [[nodiscard]] std::int64_t memory_bytes(std::int64_t threads) const noexcept override;

  /// Why only libhdf5 can read `array`, as a clause; absent if this source can.
  [[nodiscard]] static std::optional<std::string> reason_against(const h5::StoredArray& array);

 private:
  /// The wanted rows of a group that lie in one chunk, or in one row of chunks that cut rows.
  struct Wanted {
    std::int64_t group_first_row = 0;
    std::span<const RowTarget> rows;
  };

  [[nodiscard]] bool chunked() const noexcept { return !array_->linear_offset.has_value(); }
  void place_linear(const Wanted& wanted, const io::RangeReader& reader, ChunkScratch& scratch,
                    const std::stop_token& stop, ReadCost& cost) const;
  /// A small chunk that rows are wanted of: rows [first, last) of those of the call.
  struct SmallChunk {
    ByteRange range = {};     ///< Of the file: the chunk, or the wanted rows of it.
    std::int64_t number = 0;  ///< Among those of its row of chunks.
    std::uint32_t first = 0, last = 0;
    std::uint32_t filter_mask = 0;
    bool raw = false;  ///< Stored as it is.
  };
  class SmallChunks;

  void place_chunk(std::span<const std::int64_t> position, const Wanted& wanted,
                   const io::RangeReader& reader, ChunkScratch& scratch,
                   const std::stop_token& stop, ReadCost& cost) const;
  /// What of a row the chunk at that position holds.
  [[nodiscard]] RowPart part_of(std::span<const std::int64_t> position) const;
  [[nodiscard]] Error damaged(std::int64_t chunk, const std::string& reason) const;

  std::shared_ptr<const Dataset::Impl> file_;
  std::shared_ptr<const h5::StoredArray> array_;
  std::shared_ptr<const ByteSource> bytes_;
  Shape row_shape_ = {};        // of the dataset
  Shape chunk_row_shape_ = {};  // of a chunk
  std::int64_t chunk_rows_ = 0;
  std::int64_t chunk_bytes_ = 0;  // raw
  std::int64_t piece_bytes_ = 0;  // read at a time where rows are stored as they are, at most
  std::optional<ChunkScratchSizes> scratch_sizes_;
  // Of small chunks: what is read together at most, and memory for that; 0: they are large.
  std::int64_t together_piece_ = 0;
  std::size_t together_bytes_ = 0;
  std::shared_ptr<base::BufferPool> scratch_;
};

}  // namespace chunkio::sources
