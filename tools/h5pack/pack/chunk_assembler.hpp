/// Closes the gaps that skipped images leave.
///
/// Data flow: blocks of decoded images, in pack order -> ChunkAssembler -> full chunks. As long
/// as nothing is skipped a block is a chunk and nothing is copied.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include <tbb/concurrent_queue.h>

#include "h5pack/image/image.hpp"
#include "h5pack/pack/chunk_record.hpp"
#include "h5pack/sources/skipped_image.hpp"

namespace h5pack {

/// Buffers of one size, made when first needed and used again. Thread-safe.
class BufferPool {
 public:
  using Buffer = std::unique_ptr<std::uint8_t[]>;

  explicit BufferPool(std::int64_t bytes) : bytes_(static_cast<std::size_t>(bytes)) {}
  [[nodiscard]] Buffer take() {
    Buffer buffer;
    return free_.try_pop(buffer) ? std::move(buffer)
                                 : std::make_unique_for_overwrite<std::uint8_t[]>(bytes_);
  }
  void give_back(Buffer buffer) {
    if (buffer) free_.push(std::move(buffer));
  }

 private:
  std::size_t bytes_;
  tbb::concurrent_queue<Buffer> free_;
};

/// Consecutive places in pack order that are still to be packed, and the chunks they go to: a gap
/// between chunks that an earlier run has written, or all behind them.
struct PendingRange {
  std::int64_t first_chunk = 0;
  /// The chunk after the last one; absent: whatever comes of it.
  std::optional<std::int64_t> end_chunk = {};
  std::int64_t first_place = 0;
  std::int64_t end_place = 0;
};

/// Images at the places [first_place, first_place + outcomes.size()) of a range that is pending.
struct DecodedBlock {
  const PendingRange* range = nullptr;
  std::int64_t first_place = 0;
  /// Size in the source (none of a row that was stored before), or why there are no pixels.
  std::vector<std::variant<ImageSize, SkippedImage>> outcomes = {};
  BufferPool::Buffer pixels = {};  ///< A sample for each place.
};

struct PackedChunk {
  std::int64_t chunk = 0;
  std::int64_t num_rows = 0;
  BufferPool::Buffer pixels = {};  ///< Absent without rows.
  ChunkRecord record;              ///< Without statistics of pixels.
};

/// Not thread-safe: blocks come one after the other, in pack order.
class ChunkAssembler {
 public:
  /// \param pool  takes back the buffers of blocks that are used up.
  ChunkAssembler(std::int64_t chunk_samples, std::int64_t sample_bytes, PixelStatistics no_pixels,
                 BufferPool& pool);

  /// Takes the images of the next block.
  /// \pre the block has at most chunk_samples places.
  /// \returns the chunk that became full, if one did.
  /// \throws Error corrupt_data: a range with an end does not give as many chunks as it has to,
  ///         since images can be read otherwise than in the run that wrote what is around it.
  [[nodiscard]] std::optional<PackedChunk> add(DecodedBlock block);

  /// What is left after the last block: a chunk with fewer rows, or none, but perhaps with skipped
  /// images.
  [[nodiscard]] PackedChunk finish(std::int64_t end_place);

 private:
  [[nodiscard]] PackedChunk empty_chunk(std::int64_t chunk, std::int64_t first_place) const;

  std::int64_t chunk_samples_;
  std::size_t sample_bytes_;
  PixelStatistics no_pixels_;
  BufferPool* pool_;
  PackedChunk open_;
};

}  // namespace h5pack
