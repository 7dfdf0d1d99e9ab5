/// chunkbench report: the results of a sweep as images.
#pragma once

#include "command.hpp"

namespace bench {

/// Adds the subcommand to `app`; when chosen, it sets `action`, which outlives the call.
void add_report_command(CLI::App& app, h5pack::Action& action);

}  // namespace bench
