/// Waiting for the device no longer than a limit.
#pragma once

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>

#include <chunkio/error.hpp>

#include "device/gpu.hpp"

namespace chunkio::device {

using Seconds = std::chrono::duration<double>;

/// Something was not there within its limit. Nothing was changed: who asks again waits again.
class TimedOut : public Error {
 public:
  explicit TimedOut(const std::string& message) : Error(ErrorCode::out_of_resources, message) {}
};

/// As "5 s".
[[nodiscard]] inline std::string to_text(Seconds seconds) {
  std::string text = std::to_string(seconds.count());
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text + " s";
}

/// Whether `event` is done within `limit`. \throws Error as Gpu::is_done().
///
/// CUDA has no wait that ends by itself, so this looks again and again. A kernel takes tens of
/// microseconds, and a sleep ends as much too late (by some 80 where this was measured, in a
/// virtual machine), so short waits go without. Longer ones sleep for an eighth of the time waited,
/// and for 1 ms at most: looking takes some per mille of a CPU.
[[nodiscard]] inline bool wait_until_done(Gpu& gpu, EventHandle event, Seconds limit) {
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
    }
  }
  return true;
}

}  // namespace chunkio::device
