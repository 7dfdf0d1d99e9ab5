/// Wall time between points of one thread's work.
#pragma once

#include <chrono>

namespace chunkio::base {

class Stopwatch {
 public:
  /// Seconds since construction or the last lap().
  double lap() noexcept {
    const Clock::time_point now = Clock::now();
    const double seconds = std::chrono::duration<double>(now - last_).count();
    last_ = now;
    return seconds;
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point last_ = Clock::now();
};

}  // namespace chunkio::base
