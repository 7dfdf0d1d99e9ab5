/// How many threads and open files this process has, as /proc tells.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <thread>

namespace chunkio::test {

inline std::int64_t entries_of(const char* folder) {
  return std::distance(std::filesystem::directory_iterator(folder), {});
}

/// Threads of this process that have not begun to end: the kernel takes a joined thread off the
/// list a while after the join.
inline std::int64_t running_threads() {
  constexpr unsigned kExiting = 0x4;  // PF_EXITING of the kernel
  std::int64_t count = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(task.path() / "stat");
    std::string line;
    std::getline(file, line);
    const std::size_t name_end = line.rfind(')');
    if (name_end == std::string::npos) continue;  // it has ended
    std::istringstream fields(line.substr(name_end + 1));
    std::string skipped;
    for (int i = 0; i < 6; ++i) fields >> skipped;  // state to tpgid, see proc(5)
    unsigned flags = 0;
    fields >> flags;
    count += (flags & kExiting) == 0 ? 1 : 0;
  }
  return count;
}

/// Threads of this process, when no more of them end.
inline std::int64_t settled_threads() {
  std::int64_t before = running_threads();
  for (int same = 0; same < 20;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const std::int64_t now = running_threads();
    same = now == before ? same + 1 : 0;
    before = now;
  }
  return before;
}

}  // namespace chunkio::test
