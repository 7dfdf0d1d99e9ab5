/// chunkbench report: the results of a sweep as images.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/command.hpp"

namespace bench {

/// Adds the subcommand to `app`; when chosen, it sets `action`, which outlives the call.
void add_report_command(CLI::App& app, cli::Action& action);

}  // namespace bench
