/// Waiting for the device no longer than a limit.
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/wait_hook.hpp"
#include "device/gpu.hpp"

namespace chunkio::device {

/// Whether `event` is done within `limit`.
/// \param look  looked at some 20 times a second at least, unless null.
/// \throws Error as Gpu::is_done(), and what `look` throws.
///
/// CUDA has no wait that ends by itself, so this looks again and again. A kernel takes tens of
/// microseconds, and a sleep ends as much too late (by some 80 where this was measured, in a
/// virtual machine), so short waits go without. Longer ones sleep for an eighth of the time waited,
/// and for 1 ms at most: looking takes some per mille of a CPU.
[[nodiscard]] inline bool wait_until_done(Gpu& gpu, EventHandle event, base::Seconds limit,
                                          base::WaitHook* look = nullptr) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::nanoseconds kAwake = std::chrono::microseconds(100);
  constexpr std::chrono::nanoseconds kLongest = std::chrono::milliseconds(1);
  const auto start = Clock::now();
  while (!gpu.is_done(event)) {
    const std::chrono::nanoseconds waited = Clock::now() - start;
    if (waited >= limit) return false;
    if (waited < kAwake) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::min(waited / 8, kLongest));
      if (look != nullptr) (*look)();
    }
  }
  return true;
}

}  // namespace chunkio::device
