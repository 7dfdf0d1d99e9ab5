/// `chunkbench confine`: any program under the limits of a sweep.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/command.hpp"

namespace bench {

/// \param program  what to run, and its arguments.
void add_confine_command(CLI::App& app, cli::Action& action, std::vector<std::string> program);

/// What stands behind "--" on the command line of confine, which is for nobody else to parse; taken
/// from `argc`.
[[nodiscard]] std::vector<std::string> take_program(int& argc, char** argv);

}  // namespace bench
