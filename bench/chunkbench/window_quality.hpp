/// How well windows mix: the price of small windows, beside what they save.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "chunkbench/results.hpp"
#include "chunkbench/scratch_files.hpp"

namespace bench {

/// Label entropy and same-chunk pairs of the first batches (at most 400) of a chunk-shuffled epoch
/// over the whole file, relative to a global shuffle; see shuffle_quality.hpp of h5pack. Nothing
/// but labels is read.
[[nodiscard]] ShufflePoint measure_window_quality(const ChunkFile& file, const ChunkSize& chunk,
                                                  std::int64_t window_bytes,
                                                  std::int64_t batch_size, std::uint64_t seed);

/// Marks the point of the fastest chunk-shuffled cell of a chunkio source that was measured.
void mark_chosen(const std::vector<Cell>& cells, std::vector<ShufflePoint>& points);

}  // namespace bench
