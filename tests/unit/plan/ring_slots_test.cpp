#include "plan/ring_slots.hpp"

#include <algorithm>
#include <cstdint>

#include <gtest/gtest.h>

namespace chunkio::plan {
namespace {

TEST(RingSlots, AWindowTouchesAsManyBatchesAsItsWorstPlaceHas) {
  for (std::int64_t batch = 1; batch <= 7; ++batch) {
    for (std::int64_t window = 1; window <= 30; ++window) {
      std::int64_t most = 0;
      for (std::int64_t first = 0; first < batch; ++first) {
        most = std::max(most, (first + window - 1) / batch + 1);
      }
      for (const std::int64_t steps : {1, 2, 3, 100}) {
        EXPECT_EQ(batches_of_window({.window = window, .batch = batch, .num_steps = steps}),
                  std::min(most, steps))
            << window << " samples in batches of " << batch;
      }
    }
  }
}

TEST(RingSlots, HoldTwoWindowsAndTheBatchesHeld) {
  EXPECT_EQ(ring_slots({.window = 16, .batch = 4, .num_steps = 100, .max_held = 3}), 2 * 5 + 3);
}

TEST(RingSlots, HoldTheBatchesWantedAheadIfTheseAreMore) {
  // The last of them may be completed by a window that begins with it.
  const RingDemand demand{
      .window = 16, .batch = 4, .num_steps = 100, .prefetch_depth = 20, .max_held = 3};
  EXPECT_EQ(ring_slots(demand), 20 + 4 + 3);
}

TEST(RingSlots, AreThoseAheadAndHeldWhereNothingIsRead) {
  EXPECT_EQ(ring_slots({.prefetch_depth = 4, .max_held = 2}), 6);
}

}  // namespace
}  // namespace chunkio::plan
