/// How many samples a full row group of a Loader has, as libchunkio/doc/order.md defines it.
#pragma once

#include <algorithm>
#include <cstdint>

#include <chunkio/chunk_layout.hpp>
#include <chunkio/dataset.hpp>

namespace chunkio::plan {

/// Bytes of a row in memory, on average over a dataset: rows are grouped, and windows are cut, by
/// the mean, so that their lengths may differ. >= 1. \param raw_bytes  of all rows, after filters
/// are undone. \pre num_rows >= 1.
[[nodiscard]] constexpr std::int64_t mean_row_bytes(std::int64_t raw_bytes,
                                                    std::int64_t num_rows) noexcept {
  return std::max<std::int64_t>(raw_bytes / num_rows, 1);
}
/// Of the array that leads; of encoded images as they are stored, so that the order does not depend
/// on the size that they are delivered in.
[[nodiscard]] inline std::int64_t mean_row_bytes(const DatasetInfo& info) {
  if (info.encoded) return mean_row_bytes(info.encoded->num_bytes, info.num_samples);
  return mean_row_bytes(info.num_samples * info.sample_bytes(), info.num_samples);
}

/// Versions of libchunkio/doc/order.md. They differ in how small chunks are grouped.
inline constexpr std::int64_t kNewestOrderVersion = 2;
/// Chunks with less than this, in memory, are small.
inline constexpr std::int64_t kSmallChunkBytes = std::int64_t{1} << 20;

/// The samples of a full row group, and the first version of the order in which it is such a one.
struct Grouping {
  std::int64_t samples = 1;
  std::int64_t order_version = 1;
};

/// Those of a chunk, unless the rows lie in none, or in chunks too large for the window: then a
/// run of about kDefaultChunkBytes. Filtered chunks are never cut. Of small chunks, from version 2
/// on, as many whole ones as have about kDefaultChunkBytes.
/// \param order_version  the newest that is wanted. \pre info.num_samples >= 1, window_bytes >= 1.
[[nodiscard]] inline Grouping grouping(const DatasetInfo& info, std::int64_t window_bytes,
                                       std::int64_t order_version = kNewestOrderVersion) {
  const std::int64_t row_bytes = mean_row_bytes(info);
  const std::int64_t half_window = window_bytes / 2 / row_bytes;
  const std::int64_t run = std::min(kDefaultChunkBytes / row_bytes, half_window);
  if (info.stored.chunked) {
    const std::int64_t chunk_rows = std::min(info.stored.chunk_shape[0], info.num_samples);
    const bool filtered = !info.stored.filters.empty();
    if (filtered || chunk_rows <= half_window) {
      const std::int64_t merged =
          std::min(kDefaultChunkBytes, window_bytes / 2) / (chunk_rows * row_bytes);
      const bool small = chunk_rows * row_bytes < kSmallChunkBytes;
      if (order_version < 2 || !small || merged < 2 || chunk_rows == info.num_samples) {
        return {.samples = chunk_rows, .order_version = 1};
      }
      return {.samples = std::min(chunk_rows * merged, info.num_samples), .order_version = 2};
    }
  }
  return {.samples = std::clamp<std::int64_t>(run, 1, info.num_samples), .order_version = 1};
}
[[nodiscard]] inline std::int64_t group_samples(const DatasetInfo& info,
                                                std::int64_t window_bytes) {
  return grouping(info, window_bytes).samples;
}

}  // namespace chunkio::plan
