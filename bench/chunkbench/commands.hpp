/// The subcommands of chunkbench, and how it reports failures.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/command.hpp"
#include "cli/run_main.hpp"

namespace bench {

inline const cli::Reporting kChunkbench = {.program = "chunkbench",
                                           .less_memory = "smaller --cache-bytes or --chunk-bytes"};

// Each adds a subcommand to `app`; when chosen, it sets `action`, which outlives the call.

/// Measures chunk and cache sizes.
void add_sweep_command(CLI::App& app, cli::Action& action);
/// Draws the results of a sweep.
void add_report_command(CLI::App& app, cli::Action& action);
/// Any program under the limits of a sweep. \param program  what to run, and its arguments.
void add_confine_command(CLI::App& app, cli::Action& action, std::vector<std::string> program);

/// What stands behind "--" on the command line of confine, which is for nobody else to parse; taken
/// from `argc`.
[[nodiscard]] std::vector<std::string> take_program(int& argc, char** argv);

}  // namespace bench
