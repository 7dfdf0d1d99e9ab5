#include "cli/output.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include <nlohmann/json.hpp>

#include <chunkio/error.hpp>

#include "cli/escape.hpp"
#include "cli/json_text.hpp"

namespace cli {
namespace {

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) != -1; }

}  // namespace

void prepare_standard_streams() {
  // In ascending order, so that each open() takes exactly the lowest free number.
  static constexpr int kModes[] = {O_RDONLY, O_RDONLY, O_WRONLY};
  for (int fd = 0; fd < static_cast<int>(std::size(kModes)); ++fd) {
    if (!is_open(fd) && ::open("/dev/null", kModes[fd]) != fd) std::_Exit(1);
  }
  // Both would kill without a word; ignored, they are errors of the write.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

void print(std::string_view text) {
  while (!text.empty()) {
    const ::ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      throw chunkio::Error(
          chunkio::ErrorCode::io_failed,
          std::string("cannot write the results to standard output: ") + std::strerror(errno));
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

void print_error(std::string_view message, std::string_view program) {
  const std::string name = std::string(program) + ":";
  const std::string line =
      (use_colour(stderr) ? "\x1b[1;31m" + name + "\x1b[0m " : name + " ") + escape(message) + "\n";
  // There is nobody left to tell if this fails.
  std::fputs(line.c_str(), stderr);
}

void print_failure(std::string_view code, std::string_view message, bool json,
                   std::string_view program) {
  print_error(message, program);
  if (!json) return;
  const nlohmann::ordered_json object = {{"error", {{"code", code}, {"message", message}}}};
  try {
    print(json_text(object) + "\n");
  } catch (const chunkio::Error&) {
    // stdout may be the very thing that failed; the line on stderr and the exit code remain.
  }
}

void print_warning(std::string_view message) { print_error("warning: " + std::string(message)); }

bool use_colour(std::FILE* stream) {
  const char* no_color = std::getenv("NO_COLOR");
  if (no_color != nullptr && *no_color != '\0') return false;
  const char* terminal = std::getenv("TERM");
  if (terminal == nullptr || std::strcmp(terminal, "dumb") == 0) return false;
  return ::isatty(::fileno(stream)) == 1;
}

}  // namespace cli
