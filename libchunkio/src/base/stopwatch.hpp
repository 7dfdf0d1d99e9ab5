/// Time between points of one thread's work.
#pragma once

#include <time.h>

#include <chrono>

namespace chunkio::base {

/// Seconds that a processor has worked for the calling thread, in the kernel too. A system call.
inline double thread_seconds() noexcept {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// Wall time.
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
