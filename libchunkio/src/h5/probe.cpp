#include "h5/probe.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <system_error>

#include <chunkio/error.hpp>

#include "base/positional_io.hpp"
#include "base/wait_hook.hpp"
#include "h5/library.hpp"

extern char** environ;

namespace chunkio::h5 {
namespace {

using Clock = std::chrono::steady_clock;

/// Of libhdf5, the first that withstands files that were made to harm.
constexpr unsigned kTrustedMajor = 2;

/// \param output  what its standard output becomes.
pid_t start(const std::string& program, const std::string& path, int output) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  // What this process does with signals is not for the other.
  sigset_t none;
  sigset_t all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::string name = program;
  std::string argument = path;
  char* const arguments[] = {name.data(), argument.data(), nullptr};
  pid_t process = 0;
  const int error =
      ::posix_spawn(&process, program.c_str(), &actions, &attributes, arguments, environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error == ENOENT) {
    throw Error(ErrorCode::not_found,
                "there is no program " + program + ", which was to look at " + path + " (probe)",
                "probe");
  }
  if (error != 0) throw base::system_error(error, "start a process that looks at", path);
  return process;
}

/// Exit code of a program that ran out of memory.
constexpr int kFailed = 1;

enum class End { said_so, closed, late };

/// Waits until the process has written something, or has ended without.
End wait_for(int input, std::chrono::milliseconds most) {
  const Clock::time_point last = Clock::now() + most;
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(last - Clock::now());
    if (left.count() <= 0) return End::late;
    pollfd waited{.fd = input, .events = POLLIN, .revents = 0};
    if (::poll(&waited, 1, static_cast<int>(left.count())) <= 0) continue;
    char done = 0;
    const ssize_t bytes = ::read(input, &done, 1);
    if (bytes < 0 && errno == EINTR) continue;
    return bytes == 1 ? End::said_so : End::closed;
  }
}

}  // namespace

void probe_file(const std::string& program, const std::string& path,
                std::chrono::milliseconds most) {
  const LibraryNumber version = Library::version();
  if (version.major >= kTrustedMajor) return;
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw base::system_error(errno, "start a process that looks at", path);
  }
  const base::FileDescriptor input(ends[0]);
  base::FileDescriptor output(ends[1]);
  const pid_t process = start(program, path, output.get());
  output = {};  // closed, so that the end of the other one is seen
  const End end = wait_for(input.get(), most);
  if (end != End::said_so) ::kill(process, SIGKILL);
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  if (end == End::said_so) return;
  if (end == End::closed && WIFEXITED(status) && WEXITSTATUS(status) != kFailed) {
    throw Error(ErrorCode::io_failed,
                program + " ended with " + std::to_string(WEXITSTATUS(status)) +
                    " before it had looked at " + path + "; install it again, or go without",
                "probe");
  }
  const int signal = end == End::closed && WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  if (signal == SIGINT || signal == SIGTERM || signal == SIGHUP) {
    throw Error(ErrorCode::cancelled, "looking at " + path + " was stopped");
  }
  throw Error(ErrorCode::corrupt_data,
              path + " is damaged or hostile: a process that looked at it " +
                  (end == End::late ? "did not end within " + base::to_text(most)
                   : signal != 0    ? "crashed in libhdf5 " + version.text()
                                    : "ran out of memory in libhdf5 " + version.text()) +
                  "; copy or download it again, or trust it",
              "probe");
}

}  // namespace chunkio::h5
