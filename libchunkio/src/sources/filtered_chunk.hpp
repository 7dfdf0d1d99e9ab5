/// Filtered chunks read whole and decoded: what every source does that needs their bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>

#include "base/chunk_source.hpp"
#include "h5/chunk_index.hpp"
#include "h5/filters.hpp"
#include "h5/stored_array.hpp"
#include "io/range_reader.hpp"

namespace chunkio::sources {

/// How much memory reading chunks of one array takes.
struct ChunkScratchSizes {
  /// \param piece_bytes  read at a time where nothing is filtered.
  /// \pre only native filters (h5::first_foreign_filter). \throws Error out_of_resources.
  ChunkScratchSizes(const h5::StoredArray& array, const io::RangeReader& reader,
                    std::int64_t piece_bytes);

  std::size_t home = 0;   ///< For stored bytes.
  std::size_t other = 0;  ///< For decoding; 0 without filters.
  std::size_t state = 0;  ///< Of the decoder, which is no part of the buffer.
  /// Of the buffer that a ChunkScratch works in.
  [[nodiscard]] std::size_t bytes() const noexcept { return home + other; }
  /// Bytes that one ChunkScratch takes, with its buffer.
  [[nodiscard]] std::size_t footprint() const noexcept;
};

/// What one call works in. Made anew for each, which is next to nothing beside decoding, so that
/// only buffers are kept, and shared by what is read together.
struct ChunkScratch {
  /// \param buffer  sizes.bytes() or more, aligned to a page; outlives this.
  ChunkScratch(const h5::StoredArray& array, const ChunkScratchSizes& sizes,
               std::span<std::byte> buffer);

  std::span<std::byte> home;
  std::span<std::byte> other;
  std::optional<h5::ChunkDecoder> decoder;  ///< Absent without filters.
};

/// Reads a filtered chunk and undoes its filters. \pre entry.allocated().
/// \returns its raw bytes, inside `scratch`.
/// \throws h5::DamagedChunkError, and Error as RangeReader::read().
[[nodiscard]] std::span<const std::byte> read_filtered_chunk(const io::RangeReader& reader,
                                                             const h5::ChunkEntry& entry,
                                                             ChunkScratch& scratch,
                                                             const std::stop_token& stop,
                                                             ReadCost& cost);

}  // namespace chunkio::sources
