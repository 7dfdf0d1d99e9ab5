/// Runs of elements of a one-dimensional array, however it is stored: contiguous, in chunks,
/// filtered, or as libhdf5 alone can read it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>

#include <chunkio/epoch_order.hpp>

#include "base/buffer_pool.hpp"
#include "base/chunk_source.hpp"
#include "h5/dataset_impl.hpp"
#include "h5/stored_array.hpp"
#include "io/range_reader.hpp"
#include "sources/filtered_chunk.hpp"

namespace chunkio::sources {

/// Thread-safe.
class ElementReader {
 public:
  /// \param bytes    of the file. \param scratch  shared by what is read together.
  /// \throws Error out_of_resources.
  ElementReader(std::shared_ptr<const Dataset::Impl> file,
                std::shared_ptr<const h5::StoredArray> array,
                std::shared_ptr<const ByteSource> bytes, std::shared_ptr<base::BufferPool> scratch);

  /// Room that read() needs for `count` elements: whole pages where blocks are read, else whole
  /// cache lines.
  [[nodiscard]] std::size_t room(std::int64_t count) const noexcept;
  /// Reads elements [first, first + count), inside the array.
  /// \param room     as room() says, aligned as its size is.
  /// \param through  what prefetch() returned for them, or null.
  /// \returns them, inside `room`, aligned as their type is. \throws Error as ChunkSource::place().
  std::span<std::byte> read(std::int64_t first, std::int64_t count, std::span<std::byte> room,
                            const ByteSource* through, const std::stop_token& stop,
                            ReadCost& cost) const;
  /// See ChunkSource::memory_bytes(). Without what read() is given.
  [[nodiscard]] std::int64_t memory_bytes(std::int64_t threads) const noexcept;

 private:
  /// How elements are read.
  enum class Way { in_one_run, by_chunks, through_libhdf5 };
  [[nodiscard]] Way way() const noexcept;
  void read_chunks(std::int64_t first, std::span<std::byte> out, const io::RangeReader& reader,
                   const std::stop_token& stop, ReadCost& cost) const;

  std::shared_ptr<const Dataset::Impl> file_;
  std::shared_ptr<const h5::StoredArray> array_;
  std::shared_ptr<const ByteSource> bytes_;
  std::shared_ptr<base::BufferPool> scratch_;
  std::optional<ChunkScratchSizes> scratch_sizes_;  // by_chunks
};

}  // namespace chunkio::sources
