/// How many samples a full row group of a Loader has, as libchunkio/doc/order.md defines it.
#pragma once

#include <algorithm>
#include <cstdint>

#include <chunkio/chunk_layout.hpp>
#include <chunkio/dataset.hpp>

namespace chunkio::plan {

/// Those of a chunk, unless the images lie in none, or in chunks too large for the window: then a
/// run of about kDefaultChunkBytes. Filtered chunks are never cut. >= 1.
/// \pre info.num_samples >= 1, window_bytes >= 1.
[[nodiscard]] inline std::int64_t group_samples(const DatasetInfo& info,
                                                std::int64_t window_bytes) {
  const std::int64_t sample_bytes = info.sample_bytes();
  const std::int64_t half_window = window_bytes / 2 / sample_bytes;
  if (info.stored.chunked) {
    const std::int64_t chunk_rows = std::min(info.stored.chunk_shape[0], info.num_samples);
    const bool filtered = !info.stored.filters.empty();
    if (filtered || chunk_rows <= half_window) return chunk_rows;
  }
  const std::int64_t run = std::min(kDefaultChunkBytes / sample_bytes, half_window);
  return std::clamp<std::int64_t>(run, 1, info.num_samples);
}

}  // namespace chunkio::plan
