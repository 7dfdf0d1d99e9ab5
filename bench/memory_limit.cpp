#include "memory_limit.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <stdexcept>
#include <string>
#include <system_error>

namespace bench {
namespace {

struct Hierarchy {
  const char* root;
  const char* limit_file;
};
// Version 1 with its memory controller, and version 2.
constexpr Hierarchy kHierarchies[] = {{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"},
                                      {"/sys/fs/cgroup", "memory.max"}};

}  // namespace

MemoryLimit::MemoryLimit(std::int64_t bytes) {
  std::string reason = "no memory controller is mounted under /sys/fs/cgroup";
  for (const Hierarchy& hierarchy : kHierarchies) {
    const std::filesystem::path root = hierarchy.root;
    if (!std::filesystem::exists(root / "cgroup.procs")) continue;
    const std::filesystem::path group = root / ("chunkio-bench-" + std::to_string(::getpid()));
    std::error_code error;
    std::filesystem::create_directory(group, error);
    if (error) {
      reason = "cannot make " + group.string() + ": " + error.message();
      continue;
    }
    std::ofstream limit(group / hierarchy.limit_file);
    limit << bytes << std::flush;
    if (limit) {
      group_ = group;
      return;
    }
    std::filesystem::remove(group, error);
    reason = "cannot set " + (group / hierarchy.limit_file).string();
  }
  throw std::runtime_error(reason);
}

MemoryLimit::~MemoryLimit() {
  std::error_code ignored;
  std::filesystem::remove(group_, ignored);
}

std::function<bool()> MemoryLimit::enter() const {
  return [path = (group_ / "cgroup.procs").string()] {
    const int file = ::open(path.c_str(), O_WRONLY);
    if (file < 0) return false;
    const bool entered = ::write(file, "0", 1) == 1;  // 0: whoever writes
    ::close(file);
    return entered;
  };
}

}  // namespace bench
