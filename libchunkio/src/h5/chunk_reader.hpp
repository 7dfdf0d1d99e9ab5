/// Filtered chunks read through libhdf5's index and decoded here, into memory of a known size.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include <hdf5.h>

#include "base/host_memory.hpp"
#include "h5/filters.hpp"
#include "h5/stored_array.hpp"

namespace chunkio::h5 {

/// Place of the first element of a chunk, along each axis.
using ChunkStart = std::array<hsize_t, Shape::kMaxRank>;

/// The next chunk along all axes but the first. \returns false after the last.
[[nodiscard]] bool advance(ChunkStart& start, const StoredArray& array);

/// Reads chunk after chunk; its memory is reserved with the first. Used while Library::lock() is
/// held.
class ChunkReader {
 public:
  /// \param path  of the file, for messages; outlives this, as `array` does.
  /// \pre all of array.filters are native (filters.hpp).
  ChunkReader(const StoredArray& array, const std::string& path) : array_(array), path_(path) {}

  /// The whole chunk before its filters, valid until the next call; absent if it has no storage, or
  /// libhdf5 does not find it.
  /// \throws DamagedChunkError, Error hdf5_failed, out_of_resources.
  std::optional<std::span<const std::byte>> read(const ChunkStart& start);
  /// Memory of a chunk; what the last read() returned is lost.
  /// \throws Error out_of_resources.
  std::span<std::byte> room();

  /// Bytes that one takes, for the memory budget.
  static std::size_t footprint(const StoredArray& array);

 private:
  [[nodiscard]] bool is_stored(const ChunkStart& start) const noexcept;
  [[nodiscard]] bool is_partial(const ChunkStart& start) const;
  [[nodiscard]] std::int64_t last_row(const ChunkStart& start) const;
  void reserve();

  const StoredArray& array_;
  const std::string& path_;
  std::optional<ChunkDecoder> decoder_;
  base::HostBuffer buffer_;
};

}  // namespace chunkio::h5
