/// Work in a process of its own that the kernel confines.
#pragma once

#include <functional>
#include <vector>

namespace bench {

/// Forks; the child calls every one of `enter` and then `work`, and ends with the code that it
/// returns. Waits for it, and hands on SIGINT, SIGTERM and SIGHUP; the child is told to end if this
/// process is killed. So that what confines it can be removed afterwards, whatever became of it.
/// \pre this process has one thread.
/// \returns the exit code of the child, 128 + its signal, or 1 if it could not enter.
/// \throws std::system_error.
int run_confined(const std::vector<std::function<bool()>>& enter, const std::function<int()>& work);

}  // namespace bench
