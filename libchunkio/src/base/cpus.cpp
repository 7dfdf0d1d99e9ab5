#include "base/cpus.hpp"

#include <sched.h>

#include <algorithm>

namespace chunkio::base {

std::int64_t usable_cpus() noexcept {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  return ::sched_getaffinity(0, sizeof(cpus), &cpus) == 0 ? std::max(CPU_COUNT(&cpus), 1) : 1;
}

std::int64_t default_threads() noexcept {
  constexpr std::int64_t kMost = 8;
  return std::min(usable_cpus(), kMost);
}

}  // namespace chunkio::base
