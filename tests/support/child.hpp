/// Child processes that this one forks.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

namespace chunkio::test {

/// Runs `body` in a child process, which ends without any clean-up.
/// \returns what `body` does: the exit status, 99 if it throws, -1 if it ends otherwise or not
/// within 20 seconds.
template <class Body>
int in_child(Body body) {
  const ::pid_t child = ::fork();
  if (child == 0) {
    int status = 99;
    try {
      status = body();
    } catch (...) {
    }
    ::_exit(status);
  }
  int status = -1;
  for (int i = 0; i < 2000; ++i) {
    if (::waitpid(child, &status, WNOHANG) == child) {
      return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, &status, 0);
  return -1;
}

}  // namespace chunkio::test
