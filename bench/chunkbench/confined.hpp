/// Work in a process of its own that the kernel confines.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "harness/control_group.hpp"

namespace bench {

/// Something that confines a process.
struct Confinement {
  std::string name;  ///< For an error: "control group /sys/fs/cgroup/...".
  std::function<bool()>
      enter;  ///< Puts the calling process into it; false, with errno set, if not.
};

/// What enters these groups, which may be null.
[[nodiscard]] std::vector<Confinement> confinements(
    const std::vector<std::shared_ptr<ControlGroup>>& groups);

/// Forks; the child enters every one of `groups` and then calls `work`, and ends with the code that
/// it returns. Waits for it, and hands on SIGINT, SIGTERM and SIGHUP; the child is told to end if
/// this process is killed. So that what confines it can be removed afterwards, whatever became of
/// it. \pre this process has one thread. \returns the exit code of the child, 128 + its signal, or
/// 1 if it could not enter, which it says
///          on stderr.
/// \throws std::system_error.
int run_confined(std::span<const Confinement> groups, const std::function<int()>& work);

}  // namespace bench
