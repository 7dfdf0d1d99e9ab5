/// The options of `h5pack stream`.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <chunkio/dataset.hpp>
#include <chunkio/loader.hpp>

#include "cli/disk_options.hpp"

namespace h5pack {

/// What the command line said.
struct StreamOptions {
  std::string file = {};
  chunkio::OpenOptions open = {};
  /// Without only_labels: names of classes can be looked up only in the open file.
  chunkio::LoaderOptions loader = {};
  cli::DiskOptions disk = {};  ///< For loader.io.disk_limit.
  std::vector<std::string> labels = {};
  std::int64_t epochs = 1;
  std::int64_t steps = std::numeric_limits<std::int64_t>::max();  ///< Batches of the whole run.
  std::string state_in = {}, state_out = {};                      ///< Empty: not asked for.
  bool ranks_from_env = false;
  double step_ms = 0;
  bool digest = false;
  bool shuffle_quality = false;
};

/// --order, --fields and --verify.
CLI::Option* add_order(CLI::App& app, chunkio::LoaderOptions& loader);
CLI::Option* add_fields(CLI::App& app, chunkio::LoaderOptions& loader);
CLI::Option* add_verify(CLI::App& app, chunkio::LoaderOptions& loader);

/// Those of them that say how a file is read, for commands that read one likewise; `disk` is for
/// loader.io.disk_limit.
void add_reading_options(CLI::App& app, chunkio::LoaderOptions& loader, cli::DiskOptions& disk);

/// Adds them to `app`; `options` must outlive the parse. They check themselves as options.hpp says.
void add_stream_options(CLI::App& app, StreamOptions& options);

/// Completes the options after parsing (ranks from the environment) and finds contradictions.
/// \throws chunkio::Error invalid_argument.
void finish_stream_options(StreamOptions& options);

}  // namespace h5pack
