/// What the reporting commands found out, before it becomes text or JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <chunkio/chunk_layout.hpp>
#include <chunkio/dataset.hpp>
#include <chunkio/loader.hpp>

namespace h5pack {

/// `h5pack info`.
struct InfoReport {
  chunkio::DatasetInfo dataset = {};
  /// Samples of each class (or with each attribute set): stored, or counted from the labels. Empty
  /// if neither is possible.
  std::vector<std::int64_t> class_counts = {};
  /// Raw bytes of a chunk; 0 if the pictures are not chunked.
  std::int64_t chunk_bytes = 0;
  chunkio::ChunkCacheSettings cache = {};
  std::vector<std::string> advice = {};
};

/// What stays the same over the epochs of one `h5pack stream`.
struct StreamSetup {
  chunkio::DatasetInfo dataset = {};
  chunkio::SourceKind source = chunkio::SourceKind::automatic;
  std::string source_reason = {};
  chunkio::OrderMode order = chunkio::OrderMode::chunk_shuffled;
  std::int64_t batch_size = 0;
  std::int64_t num_threads = 0;
  std::int64_t num_groups = 0;  ///< Row groups an epoch visits: the chunks of a file packed here.
  std::int64_t group_samples = 0;  ///< Samples of a full one.
  std::int64_t window_groups = 0;
  std::int64_t memory_bytes = 0;
  std::uint64_t seed = 0;
};

/// One epoch of `h5pack stream`.
struct EpochReport {
  std::int64_t epoch = 0;
  /// Wall time from asking for the epoch until its last batch was released.
  double seconds = 0;
  chunkio::LoaderStats stats = {};
  /// XXH3-64 of the delivered sample ids, as little-endian int64 in delivery order.
  std::uint64_t order_digest = 0;
  /// Sum mod 2^64 of XXH3-64(pixels of a sample, seed = its source id): tells whether the same
  /// pictures were delivered, in whatever order. Taken in a pass of its own, outside `seconds`.
  std::optional<std::uint64_t> pixel_digest = {};

  [[nodiscard]] double images_per_second() const {
    return seconds > 0 ? static_cast<double>(stats.images) / seconds : 0;
  }
  [[nodiscard]] double bytes_per_second() const {
    return seconds > 0 ? static_cast<double>(stats.bytes_delivered) / seconds : 0;
  }
  /// Share of the time the consumer waited for a batch.
  [[nodiscard]] double stall_fraction() const {
    return seconds > 0 ? stats.stall_seconds / seconds : 0;
  }
};

/// `h5pack preview`.
struct PreviewReport {
  std::string output = {};
  std::int64_t rows = 0, columns = 0;
  std::int64_t images = 0;             ///< Pictures on the sheet.
  std::int64_t width = 0, height = 0;  ///< Pixels of the sheet.
};

}  // namespace h5pack
