#include "h5/probe.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include <chunkio/error.hpp>

#include "base/positional_io.hpp"
#include "base/wait_hook.hpp"
#include "h5/library.hpp"
#include "h5/probe_wire.hpp"
#include "io/local_file.hpp"

extern char** environ;

namespace chunkio::h5 {
namespace {

using Clock = std::chrono::steady_clock;

/// That a program may be given: far more than describes any file.
constexpr std::int64_t kMostServed = std::int64_t{256} << 20;

/// \param asks    whether it reads through the socket; else by itself.
/// \param socket  what its standard output becomes, and its standard input if it asks.
pid_t start(const std::string& program, const std::string& path, bool asks, int socket) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_adddup2(&actions, socket, STDOUT_FILENO);
  if (asks) {
    ::posix_spawn_file_actions_adddup2(&actions, socket, STDIN_FILENO);
  } else {
    ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  }
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
  std::string argument = asks ? "-" : path == "-" ? "./-" : path;
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

enum class End { said_so, closed, late, endless };

/// The bytes that a program asked for, as a reply.
std::vector<std::byte> reply_to(const ProbeRequest& request, const ByteSource& source) {
  const bool inside = request.bytes >= 1 && request.bytes <= kMostAsked && request.offset >= 0 &&
                      request.offset <= source.size() - request.bytes;
  std::vector<std::byte> reply(1 + static_cast<std::size_t>(inside ? request.bytes : 0));
  reply[0] = std::byte{inside};
  if (inside) source.read_at(request.offset, std::span(reply).subspan(1), {});
  return reply;
}

/// Gives the process what it asks for, until it says that it is done, or has ended without.
/// \param source  null: it reads by itself.
End attend(int socket, const ByteSource* source, Clock::duration left) {
  std::int64_t served = 0;
  for (;;) {
    const Clock::time_point since = Clock::now();
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(left);
    if (wait.count() <= 0) return End::late;
    pollfd waited{.fd = socket, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&waited, 1, static_cast<int>(wait.count()));
    left -= Clock::now() - since;
    if (ready <= 0) continue;
    ProbeRequest request;
    const auto bytes = receive_message(socket, std::as_writable_bytes(std::span(&request, 1)));
    if (!bytes) return End::closed;
    if (source == nullptr || *bytes != sizeof(request)) return End::said_so;
    const std::vector<std::byte> reply = reply_to(request, *source);
    served += std::ssize(reply);
    if (served > kMostServed) return End::endless;
    if (!send_message(socket, reply)) return End::closed;
  }
}

/// A process that is gone, whatever happens, when this is.
class Child {
 public:
  explicit Child(pid_t process) noexcept : process_(process) {}
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (process_ == 0) return;
    kill();
    static_cast<void>(wait());
  }

  void kill() const noexcept { ::kill(process_, SIGKILL); }
  /// How it ended, as waitpid() says.
  [[nodiscard]] int wait() noexcept {
    int status = 0;
    while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
    }
    process_ = 0;
    return status;
  }

 private:
  pid_t process_;
};

}  // namespace

void probe_file(const std::string& program, const ByteSource& source,
                std::chrono::milliseconds most) {
  const std::string& path = source.name();
  const bool local = io::as_local_file(source) != nullptr;
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw base::system_error(errno, "start a process that looks at", path);
  }
  const base::FileDescriptor ours(ends[0]);
  base::FileDescriptor its(ends[1]);
  Child child(start(program, path, !local, its.get()));
  its = {};  // closed, so that the end of the other one is seen
  const std::int64_t size = source.size();
  if (!local) static_cast<void>(send_message(ours.get(), std::as_bytes(std::span(&size, 1))));
  const End end = attend(ours.get(), local ? nullptr : &source, most);
  if (end != End::said_so) child.kill();
  const int status = child.wait();
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
  const std::string version = Library::version().text();
  throw Error(ErrorCode::corrupt_data,
              path + " is damaged or hostile: a process that looked at it " +
                  (end == End::late      ? "did not end within " + base::to_text(most)
                   : end == End::endless ? "read more than 256 MiB to learn what is in it"
                   : signal != 0         ? "crashed in libhdf5 " + version
                                         : "ran out of memory in libhdf5 " + version) +
                  "; copy or download it again, or trust it",
              "probe");
}

}  // namespace chunkio::h5
