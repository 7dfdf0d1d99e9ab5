#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <chunkio/error.hpp>

#include "chunkbench/commands.hpp"
#include "chunkbench/confined.hpp"
#include "cli/disk_options.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "cli/quote.hpp"
#include "harness/child_process.hpp"
#include "harness/control_group.hpp"
#include "harness/device_throttle.hpp"

namespace bench {
namespace {

using chunkio::Error;
using chunkio::ErrorCode;
using cli::ExitCode;

struct ConfineCommand {
  std::int64_t throttle = 0;  ///< Bytes a second; 0: none.
  std::int64_t memory_limit = 0;
  std::string disk_of = ".";
  std::vector<std::string> program = {};  ///< And its arguments.
};

/// In the child, in place of this program. As env(1): 127 if there is no such program, 126 if it
/// cannot be run.
int become(const std::vector<std::string>& program) {
  const std::vector<char*> words = exec_words(program);
  // What is ignored stays so in the program, which does not expect it.
  std::signal(SIGPIPE, SIG_DFL);
  std::signal(SIGXFSZ, SIG_DFL);
  ::execvp(words[0], words.data());
  const int error = errno;
  cli::print_error("cannot run " + cli::quote(program.front()) + ": " + std::strerror(error),
                   kChunkbench.program);
  return error == ENOENT ? 127 : 126;
}

/// What sweep does instead where there is no group cannot be done to other programs, so here that
/// is an error.
ExitCode confine(const ConfineCommand& command) {
  if (command.throttle == 0 && command.memory_limit == 0) {
    throw Error(ErrorCode::invalid_argument,
                "say what the program is limited to: --throttle-device RATE, --memory-limit BYTES");
  }
  DeviceThrottle device;
  std::shared_ptr<ControlGroup> memory;
  try {
    if (command.throttle > 0) {
      device = throttle_device(device_of(command.disk_of), command.throttle);
      std::fprintf(stderr, "chunkbench: %s\n", device.description.c_str());
    }
    if (command.memory_limit > 0) memory = limit_memory(command.memory_limit, device.group);
  } catch (const NoControlGroup& error) {
    throw Error(ErrorCode::unsupported, std::string(error.what()) + "; " +
                                            cli::quote(command.program.front()) + " was not run");
  }
  return static_cast<ExitCode>(
      run_confined(confinements({device.group, memory}), [&] { return become(command.program); }));
}

}  // namespace

void add_confine_command(CLI::App& app, cli::Action& action, std::vector<std::string> program) {
  CLI::App* const command = app.add_subcommand(
      "confine", "Run any program on a disk or with memory as limited as a sweep's");
  const auto chosen = std::make_shared<ConfineCommand>();
  chosen->program = std::move(program);
  cli::add_throttle_device(*command, chosen->throttle,
                           "Let the disk of --disk-of read so many bytes a second at most; what is "
                           "in the page cache is as fast as ever");
  cli::add_byte_size(*command, "--memory-limit", chosen->memory_limit,
                     "So much memory, page cache included")
      ->default_str("");
  command->add_option("--disk-of", chosen->disk_of, "A file or folder on the disk to throttle")
      ->type_name("PATH")
      ->capture_default_str();
  command->footer("chunkbench confine [OPTIONS] -- PROGRAM [ARGUMENTS...]");
  command->callback([&action, chosen] {
    if (chosen->program.empty()) {
      throw Error(ErrorCode::invalid_argument, "name the program to run, behind --");
    }
    action = [chosen] { return confine(*chosen); };
  });
}

std::vector<std::string> take_program(int& argc, char** argv) {
  if (argc < 2 || std::strcmp(argv[1], "confine") != 0) return {};
  char** const end = argv + argc;
  char** const marker =
      std::find_if(argv, end, [](const char* word) { return std::strcmp(word, "--") == 0; });
  if (marker == end) return {};
  argc = static_cast<int>(marker - argv);
  return {marker + 1, end};
}

}  // namespace bench
