#include "harness/child_process.hpp"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

namespace bench {
namespace {

struct Pipe {
  Pipe() {
    if (::pipe(ends.data()) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  void close_end(std::size_t end) {
    if (ends[end] >= 0) ::close(ends[end]);
    ends[end] = -1;
  }
  std::array<int, 2> ends{-1, -1};
};

/// Whether there may be more.
bool read_some(int descriptor, std::string& text) {
  std::array<char, 1 << 16> buffer{};
  const ssize_t got = ::read(descriptor, buffer.data(), buffer.size());
  if (got < 0) return errno == EINTR;
  text.append(buffer.data(), static_cast<std::size_t>(got));
  return got > 0;
}

}  // namespace

std::string ChildResult::complaint() const {
  const std::size_t last = error.find_last_not_of(" \n");
  if (last == std::string::npos) return "it ended with code " + std::to_string(exit_code);
  const std::size_t line = error.find_last_of('\n', last);
  const std::size_t first = line == std::string::npos ? 0 : line + 1;
  return error.substr(first, last + 1 - first);
}

ChildResult run_child(const std::vector<std::string>& arguments,
                      const std::function<bool()>& before_exec) {
  std::vector<char*> words;
  for (const std::string& argument : arguments)
    words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  Pipe out;
  Pipe error;
  const pid_t child = ::fork();
  if (child < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (child == 0) {
    ::dup2(out.ends[1], STDOUT_FILENO);
    ::dup2(error.ends[1], STDERR_FILENO);
    for (const int end : {out.ends[0], out.ends[1], error.ends[0], error.ends[1]}) ::close(end);
    if (before_exec && !before_exec()) ::_exit(126);
    ::execvp(words[0], words.data());
    ::_exit(127);
  }
  out.close_end(1);
  error.close_end(1);
  ChildResult result;
  std::array<pollfd, 2> streams{pollfd{out.ends[0], POLLIN, 0}, pollfd{error.ends[0], POLLIN, 0}};
  while (streams[0].fd >= 0 || streams[1].fd >= 0) {
    if (::poll(streams.data(), streams.size(), -1) < 0) {
      if (errno == EINTR) continue;
      break;
    }
    if (streams[0].revents != 0 && !read_some(streams[0].fd, result.out)) streams[0].fd = -1;
    if (streams[1].revents != 0 && !read_some(streams[1].fd, result.error)) streams[1].fd = -1;
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

}  // namespace bench
