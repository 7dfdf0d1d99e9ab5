/// Exit codes of a command, and the options that all commands of h5pack have.
///
/// Data flow: main parses -> the chosen subcommand's action runs -> its ExitCode.
#pragma once

#include <functional>

namespace cli {

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

}  // namespace cli
