/// chunkbench sweep: options and exit code.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/command.hpp"

namespace bench {

/// Adds the subcommand; if it is chosen, sets `action`, which must outlive the parse.
void add_sweep_command(CLI::App& app, cli::Action& action);

}  // namespace bench
