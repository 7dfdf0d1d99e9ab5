/// What a look at a dataset finds out beyond what its file says of itself: whether its chunking and
/// its order suit training.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <chunkio/chunk_layout.hpp>
#include <chunkio/dataset.hpp>
#include <chunkio/export.hpp>

namespace chunkio {

struct Inspection {
  DatasetInfo dataset = {};
  /// Samples of each class (or with each attribute set): stored, or counted from the labels. Empty
  /// if neither is possible.
  std::vector<std::int64_t> class_counts = {};
  std::int64_t chunk_bytes = 0;  ///< Of a chunk before filters; 0 if the images are not chunked.
  ChunkCacheSettings cache = {};
  /// What could be better, worst first: one or two sentences each.
  std::vector<std::string> advice = {};
};

/// Plain-language findings on a chunking, worst first; empty if there is nothing to improve. Each
/// entry is one or two sentences: what is wrong, what it costs when samples are read in random
/// order, and the hint.
[[nodiscard]] CHUNKIO_EXPORT std::vector<std::string> chunking_advice(const StoredLayout& stored);

/// Reads at most 2^24 labels, and no image. Blocks on I/O. Thread-safe.
/// \throws Error hdf5_failed, corrupt_data: the labels cannot be read.
[[nodiscard]] CHUNKIO_EXPORT Inspection inspect(const Dataset& dataset);

}  // namespace chunkio
