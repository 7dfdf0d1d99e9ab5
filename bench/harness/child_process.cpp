#include "harness/child_process.hpp"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <system_error>

namespace bench {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const noexcept { std::fclose(file); }
};
/// Takes what the child says, and is gone when it is closed.
using Output = std::unique_ptr<std::FILE, CloseFile>;

Output make_output() {
  Output file(std::tmpfile());
  if (!file) throw std::system_error(errno, std::generic_category(), "a temporary file");
  return file;
}

std::string text_of(std::FILE* file) {
  std::string text(static_cast<std::size_t>(::lseek(::fileno(file), 0, SEEK_END)), '\0');
  std::rewind(file);
  text.resize(std::fread(text.data(), 1, text.size(), file));
  return text;
}

}  // namespace

std::string ChildResult::complaint() const {
  const std::size_t last = error.find_last_not_of(" \n");
  if (last == std::string::npos) return "it ended with code " + std::to_string(exit_code);
  const std::size_t line = error.find_last_of('\n', last);
  const std::size_t first = line == std::string::npos ? 0 : line + 1;
  return error.substr(first, last + 1 - first);
}

std::vector<char*> exec_words(const std::vector<std::string>& arguments) {
  std::vector<char*> words;
  for (const std::string& word : arguments) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  return words;
}

ChildResult run_child(const std::vector<std::string>& arguments,
                      const std::function<bool()>& before_exec) {
  const std::vector<char*> words = exec_words(arguments);
  const Output out = make_output();
  const Output error = make_output();
  const pid_t child = ::fork();
  if (child < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (child == 0) {
    ::dup2(::fileno(out.get()), STDOUT_FILENO);
    ::dup2(::fileno(error.get()), STDERR_FILENO);
    if (before_exec && !before_exec()) ::_exit(126);
    ::execvp(words[0], words.data());
    ::_exit(127);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return {.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
          .out = text_of(out.get()),
          .error = text_of(error.get())};
}

}  // namespace bench
