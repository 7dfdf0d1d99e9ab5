/// How many batch buffers a Loader needs: most of its memory.
#pragma once

#include <algorithm>
#include <cstdint>

namespace chunkio::plan {

/// What is read of one lane, in samples.
struct RingDemand {
  std::int64_t window = 0;  ///< The most that a window has; 0: nothing is read.
  std::int64_t batch = 1;   ///< >= 1.
  std::int64_t num_steps = 0;
  std::int64_t prefetch_depth = 1;
  std::int64_t max_held = 1;
};

/// Batches that one window touches at most: it may begin with the last sample of one.
[[nodiscard]] inline std::int64_t batches_of_window(const RingDemand& demand) {
  if (demand.window == 0) return 0;
  // Never more batches than the epoch has.
  return std::min((demand.window + demand.batch - 2) / demand.batch + 1, demand.num_steps);
}

/// Slots for two windows in flight (see read/window_scheduler.hpp), or so many that the window that
/// completes the last batch wanted ahead can be opened; and for the batches held.
[[nodiscard]] inline std::int64_t ring_slots(const RingDemand& demand) {
  const std::int64_t touched = batches_of_window(demand);
  const std::int64_t ahead = demand.prefetch_depth + std::max<std::int64_t>(touched - 1, 0);
  return std::max(2 * touched, ahead) + demand.max_held;
}

}  // namespace chunkio::plan
