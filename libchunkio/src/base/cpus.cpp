#include "base/cpus.hpp"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <string>

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

// Not from sysconf(): there glibc answers ten times as much on some AMD machines.
std::int64_t last_level_cache_bytes() {
  std::int64_t bytes = 0;
  for (int index = 0;; ++index) {
    std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) +
                       "/size");
    std::int64_t kibibytes = 0;
    if (!(file >> kibibytes)) return bytes;
    bytes = std::max(bytes, kibibytes << 10);
  }
}

}  // namespace chunkio::base
