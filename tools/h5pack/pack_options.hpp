/// Options that all packing commands have, append included.
#pragma once

#include <CLI/CLI.hpp>

#include "pack_command.hpp"

namespace h5pack {

/// \param command  must outlive the parse.
void add_common_options(CLI::App& app, PackCommand& command);

/// Those of CSV files.
void add_csv_options(CLI::App& app, CsvOptions& csv);

/// Turns texts into options and finds contradictions; nothing has been touched yet.
/// \throws chunkio::Error invalid_argument.
void finish_options(PackCommand& command);

}  // namespace h5pack
