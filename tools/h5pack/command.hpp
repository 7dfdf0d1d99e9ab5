/// What every subcommand shares: how it is registered, how it ends, how it talks.
///
/// Data flow: main parses -> the chosen subcommand's action runs -> its ExitCode. Only code under
/// tools/ writes to stdout (results) and stderr (progress, errors).
#pragma once

#include <functional>

#include <CLI/CLI.hpp>

namespace h5pack {

/// The documented exit codes of h5pack. Never renumber.
enum class ExitCode : int {
  ok = 0,
  failed = 1,         ///< The operation failed; one line on stderr says why.
  usage = 2,          ///< Wrong usage; nothing was done.
  skipped = 3,        ///< Finished, but samples were skipped.
  damaged = 4,        ///< verify: the file is damaged, or differs from its source.
  hung_up = 129,      ///< SIGHUP: the terminal was closed.
  interrupted = 130,  ///< SIGINT.
  terminated = 143,   ///< SIGTERM.
};

/// Options before or after any subcommand.
struct GlobalOptions {
  bool json = false;   ///< Results on stdout as JSON.
  bool quiet = false;  ///< No progress on stderr.
};

/// Set by the chosen subcommand while parsing (CLI11 callback); run by main afterwards.
using Action = std::function<ExitCode()>;

/// Each adds its subcommand(s) to `app` and, when chosen, sets `action`. The references outlive the
/// call.
void add_pack_commands(CLI::App& app, const GlobalOptions& global, Action& action);
void add_info_command(CLI::App& app, const GlobalOptions& global, Action& action);
void add_tune_command(CLI::App& app, const GlobalOptions& global, Action& action);
void add_link_command(CLI::App& app, const GlobalOptions& global, Action& action);
void add_doctor_command(CLI::App& app, const GlobalOptions& global, Action& action);
void add_stream_command(CLI::App& app, const GlobalOptions& global, Action& action);
void add_preview_command(CLI::App& app, const GlobalOptions& global, Action& action);
void add_verify_command(CLI::App& app, const GlobalOptions& global, Action& action);
void add_export_command(CLI::App& app, const GlobalOptions& global, Action& action);
void add_repack_command(CLI::App& app, const GlobalOptions& global, Action& action);
void add_append_command(CLI::App& app, const GlobalOptions& global, Action& action);

}  // namespace h5pack
