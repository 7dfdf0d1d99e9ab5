#include "harness/control_group.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <sstream>
#include <system_error>

namespace bench {
namespace {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) parts.push_back(part);
  return parts;
}

bool contains(const std::vector<std::string>& parts, const std::string& part) {
  return std::find(parts.begin(), parts.end(), part) != parts.end();
}

std::string first_line(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

/// \returns 0 or errno.
int write_line(const std::filesystem::path& path, const std::string& line) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0) return errno;
  const ssize_t written = ::write(file, line.data(), line.size());
  int error = written < 0 ? errno : 0;
  if (written >= 0 && written != static_cast<ssize_t>(line.size())) error = EIO;
  ::close(file);
  return error;
}

}  // namespace

std::vector<Hierarchy> hierarchies_with(const std::string& controller,
                                        const std::filesystem::path& proc) {
  const std::string name_in_1 = controller == "io" ? "blkio" : controller;
  std::vector<Hierarchy> found;
  std::ifstream in(proc / "self/mounts");
  // "cgroup /sys/fs/cgroup/memory cgroup rw,relatime,memory 0 0"
  for (std::string line; std::getline(in, line);) {
    const std::vector<std::string> fields = split(line, ' ');
    if (fields.size() < 4) continue;
    const std::filesystem::path root = fields[1];
    if (fields[2] == "cgroup" && contains(split(fields[3], ','), name_in_1)) {
      found.push_back({root, 1});
    } else if (fields[2] == "cgroup2" &&
               contains(split(first_line(root / "cgroup.controllers"), ' '), controller)) {
      found.push_back({root, 2});
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.version < b.version; });
  return found;
}

ControlGroup::ControlGroup(const Hierarchy& hierarchy, const std::string& controller,
                           const Limit& limit)
    : hierarchy_(hierarchy) {
  static std::atomic<int> number = 0;
  path_ = hierarchy.root /
          ("chunkio-bench-" + std::to_string(::getpid()) + "-" + std::to_string(++number));
  std::error_code error;
  std::filesystem::create_directory(path_, error);
  if (error) throw NoControlGroup("cannot make " + path_.string() + ": " + error.message());
  try {
    set(controller, limit);
    start_guardian();
  } catch (...) {
    std::filesystem::remove(path_, error);
    throw;
  }
}

void ControlGroup::set(const std::string& controller, const Limit& limit) {
  // In version 2 a group has the controllers that the one around it hands down.
  if (hierarchy_.version == 2) {
    static_cast<void>(write_line(hierarchy_.root / "cgroup.subtree_control", "+" + controller));
  }
  const int failed = write_line(path_ / limit.file, limit.value);
  if (failed == 0) return;
  throw NoControlGroup("cannot set " + (path_ / limit.file).string() + " to '" + limit.value +
                       "': " + std::strerror(failed));
}

void ControlGroup::start_guardian() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    throw NoControlGroup(std::string("cannot make a pipe: ") + std::strerror(errno));
  }
  const std::string path = path_.string();
  guardian_ = ::fork();
  if (guardian_ < 0) {
    const int error = errno;
    ::close(ends[0]);
    ::close(ends[1]);
    throw NoControlGroup(std::string("cannot start a process: ") + std::strerror(error));
  }
  if (guardian_ == 0) {
    // System calls only: other threads of the parent may hold any lock.
    ::setsid();  // not stopped from the terminal, as the parent may be
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::signal(signal, SIG_IGN);
    ::dup2(ends[0], 0);
    ::close_range(1, ~0U, 0);
    char byte = 0;
    while (::read(0, &byte, 1) < 0 && errno == EINTR) {
    }
    // Those who were in the group may take a moment to end.
    for (int attempt = 0; attempt < 600; ++attempt) {
      if (::rmdir(path.c_str()) == 0 || errno == ENOENT) ::_exit(0);
      ::usleep(100'000);
    }
    ::_exit(1);
  }
  ::close(ends[0]);
  guarded_ = ends[1];
}

ControlGroup::~ControlGroup() {
  ::rmdir(path_.c_str());
  ::close(guarded_);
  while (::waitpid(guardian_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

std::function<bool()> ControlGroup::enter() const {
  return [path = (path_ / "cgroup.procs").string()] {
    const int file = ::open(path.c_str(), O_WRONLY);
    if (file < 0) return false;
    const bool entered = ::write(file, "0", 1) == 1;  // 0: the writing process
    const int error = errno;
    ::close(file);
    errno = error;
    return entered;
  };
}

std::shared_ptr<ControlGroup> make_group(
    const std::string& controller,
    const std::function<ControlGroup::Limit(const Hierarchy&)>& limit_in,
    const std::shared_ptr<ControlGroup>& beside, const std::filesystem::path& proc) {
  std::string reason = "no control groups for '" + controller + "' are mounted";
  for (const Hierarchy& hierarchy : hierarchies_with(controller, proc)) {
    try {
      if (beside && beside->hierarchy() == hierarchy) {
        beside->set(controller, limit_in(hierarchy));
        return beside;
      }
      return std::make_shared<ControlGroup>(hierarchy, controller, limit_in(hierarchy));
    } catch (const NoControlGroup& error) {
      reason = error.what();
    }
  }
  throw NoControlGroup(reason);
}

std::shared_ptr<ControlGroup> limit_memory(std::int64_t bytes,
                                           const std::shared_ptr<ControlGroup>& beside) {
  return make_group(
      "memory",
      [bytes](const Hierarchy& hierarchy) {
        return ControlGroup::Limit{hierarchy.version == 1 ? "memory.limit_in_bytes" : "memory.max",
                                   std::to_string(bytes)};
      },
      beside);
}

}  // namespace bench
