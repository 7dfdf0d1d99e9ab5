#include "io/page_cache.hpp"

#include <fcntl.h>
#include <sys/uio.h>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <limits>
#include <string>

namespace chunkio::io {
namespace {

// The kernel shortens a longer request, without saying so, to the largest that the device takes at
// once or to what it reads ahead by default, which is this, whichever is more.
constexpr std::int64_t kReadaheadBytes = std::int64_t{128} << 10;

/// The lowest limit of the control group `group` and those around it, in the hierarchy mounted at
/// `root`; files called `file` hold a number each, or "max".
std::int64_t lowest_limit(const std::string& root, std::string group, const char* file) {
  std::int64_t lowest = std::numeric_limits<std::int64_t>::max();
  while (true) {
    std::ifstream limit_file(root + group + "/" + file);
    std::int64_t limit = 0;
    if (limit_file >> limit) lowest = std::min(lowest, limit);
    const std::size_t slash = group.find_last_of('/');
    if (slash == std::string::npos) return lowest;
    group.erase(slash);
  }
}

/// What the control groups of this process leave it (cgroups(7)): lines "N:CONTROLLERS:/GROUP".
std::int64_t control_group_limit(const std::string& proc, const std::string& control_groups) {
  std::int64_t lowest = std::numeric_limits<std::int64_t>::max();
  std::ifstream groups(proc + "/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    std::string group = line.substr(second + 1);
    if (group == "/") group.clear();
    if (controllers.empty()) {
      lowest = std::min(lowest, lowest_limit(control_groups, group, "memory.max"));
    } else if (("," + controllers + ",").find(",memory,") != std::string::npos) {
      lowest = std::min(lowest,
                        lowest_limit(control_groups + "/memory", group, "memory.limit_in_bytes"));
    }
  }
  return lowest;
}

}  // namespace

std::int64_t cacheable_bytes(const std::string& proc, const std::string& control_groups) {
  std::int64_t bytes = std::numeric_limits<std::int64_t>::max();
  std::ifstream meminfo(proc + "/meminfo");
  for (std::string key; meminfo >> key;) {
    std::int64_t kibibytes = 0;
    if (key == "MemAvailable:" && meminfo >> kibibytes) bytes = kibibytes * 1024;
    meminfo.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return std::min(bytes, control_group_limit(proc, control_groups));
}

bool in_page_cache(int fd, std::int64_t offset) noexcept {
  std::byte byte{};
  const iovec target{.iov_base = &byte, .iov_len = 1};
  // Answers EAGAIN instead of reading from the disk.
  return ::preadv2(fd, &target, 1, offset, RWF_NOWAIT) == 1;
}

void read_ahead(int fd, std::int64_t begin, std::int64_t end) noexcept {
  if (begin >= end || (in_page_cache(fd, begin) && in_page_cache(fd, end - 1))) return;
  for (std::int64_t offset = begin; offset < end; offset += kReadaheadBytes) {
    (void)::readahead(fd, offset,
                      static_cast<std::size_t>(std::min(kReadaheadBytes, end - offset)));
  }
}

}  // namespace chunkio::io
