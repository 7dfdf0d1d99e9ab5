/// How many threads and open files this process has, as /proc tells.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <thread>

namespace chunkio::test {

inline std::int64_t entries_of(const char* folder) {
  return std::distance(std::filesystem::directory_iterator(folder), {});
}

/// Threads of this process, when no more of them end: the kernel takes a joined thread off the list
/// a moment after the join.
inline std::int64_t settled_threads() {
  std::int64_t before = entries_of("/proc/self/task");
  for (int same = 0; same < 20;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const std::int64_t now = entries_of("/proc/self/task");
    same = now == before ? same + 1 : 0;
    before = now;
  }
  return before;
}

}  // namespace chunkio::test
