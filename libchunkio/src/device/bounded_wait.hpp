/// Waiting for the device no longer than a limit.
#pragma once

#include <algorithm>
#include <chrono>
#include <exception>
#include <functional>
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

/// What DeviceOptions::on_wait threw. Likewise nothing was changed.
struct Interrupted {
  std::exception_ptr thrown;
};

/// DeviceOptions::on_wait, as often as it is promised.
class WaitHook {
 public:
  /// Half of what a person who presses Ctrl-C takes for at once.
  static constexpr std::chrono::milliseconds kInterval{50};

  /// \param on_wait  may be empty. Not copied.
  explicit WaitHook(const std::function<void()>& on_wait) noexcept : on_wait_(on_wait) {}

  /// Calls it if an interval has passed since the last call. \throws Interrupted.
  void operator()() {
    const Clock::time_point now = Clock::now();
    if (!on_wait_ || now - called_ < kInterval) return;
    called_ = now;
    try {
      on_wait_();
    } catch (...) {
      throw Interrupted{std::current_exception()};
    }
  }

 private:
  using Clock = std::chrono::steady_clock;
  const std::function<void()>& on_wait_;
  Clock::time_point called_ = Clock::now();
};

/// As "5 s".
[[nodiscard]] inline std::string to_text(Seconds seconds) {
  std::string text = std::to_string(seconds.count());
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text + " s";
}

/// Whether `event` is done within `limit`. \throws Error as Gpu::is_done(), Interrupted.
///
/// CUDA has no wait that ends by itself, so this looks again and again. A kernel takes tens of
/// microseconds, and a sleep ends as much too late (by some 80 where this was measured, in a
/// virtual machine), so short waits go without. Longer ones sleep for an eighth of the time waited,
/// and for 1 ms at most: looking takes some per mille of a CPU.
[[nodiscard]] inline bool wait_until_done(Gpu& gpu, EventHandle event, Seconds limit,
                                          const std::function<void()>& on_wait = {}) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::nanoseconds kAwake = std::chrono::microseconds(100);
  constexpr std::chrono::nanoseconds kLongest = std::chrono::milliseconds(1);
  const auto start = Clock::now();
  WaitHook look(on_wait);
  while (!gpu.is_done(event)) {
    const std::chrono::nanoseconds waited = Clock::now() - start;
    if (waited >= limit) return false;
    if (waited < kAwake) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::min(waited / 8, kLongest));
      look();
    }
  }
  return true;
}

}  // namespace chunkio::device
