#include "chunkbench/confined.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <system_error>

#include "chunkbench/commands.hpp"
#include "cli/output.hpp"

namespace bench {
namespace {

constexpr std::array<int, 3> kSignals = {SIGINT, SIGTERM, SIGHUP};

std::atomic<pid_t> g_child{0};
static_assert(std::atomic<pid_t>::is_always_lock_free);

void hand_on(int number) {
  if (const pid_t child = g_child; child > 0) ::kill(child, number);
}

bool entered(std::span<const Confinement> groups) {
  for (const Confinement& group : groups) {
    if (group.enter()) continue;
    cli::print_error("cannot enter " + group.name + ": " + std::generic_category().message(errno),
                     kChunkbench.program);
    return false;
  }
  return true;
}

}  // namespace

std::vector<Confinement> confinements(const std::vector<std::shared_ptr<ControlGroup>>& groups) {
  std::vector<Confinement> found;
  for (const std::shared_ptr<ControlGroup>& group : groups) {
    if (group) found.push_back({"control group " + group->path().string(), group->enter()});
  }
  return found;
}

int run_confined(std::span<const Confinement> groups, const std::function<int()>& work) {
  // A signal between fork() and the handlers would be lost on one of the two.
  sigset_t handed_on;
  ::sigemptyset(&handed_on);
  for (const int number : kSignals) ::sigaddset(&handed_on, number);
  sigset_t before;
  ::sigprocmask(SIG_BLOCK, &handed_on, &before);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) {
    const int error = errno;
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    throw std::system_error(error, std::generic_category(), "fork");
  }
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    // Its own group, so that Ctrl-C comes once, from the parent.
    ::setpgid(0, 0);
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    // Else the parent is gone, and nobody wants a result.
    const int code = ::getppid() == parent && entered(groups) ? work() : 1;
    std::fflush(nullptr);
    ::_exit(code);
  }
  g_child = child;
  std::array<struct ::sigaction, kSignals.size()> previous{};
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    struct ::sigaction action {};
    action.sa_handler = hand_on;
    ::sigemptyset(&action.sa_mask);
    ::sigaction(kSignals[i], &action, &previous[i]);
    if (previous[i].sa_handler == SIG_IGN) ::sigaction(kSignals[i], &previous[i], nullptr);
  }
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  g_child = 0;
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], &previous[i], nullptr);
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace bench
