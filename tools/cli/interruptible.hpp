/// Runs long work that SIGINT, SIGTERM or SIGHUP may stop, and says what is left.
#pragma once

#include <functional>
#include <string>

#include "cli/command.hpp"

namespace cli {

/// What a command that was told to stop leaves, as clauses for its last words.
struct Leavings {
  std::string stopped = {};  ///< When it stopped; empty: the error says it.
  std::string ended = {};    ///< When it did not and was ended: that, and how to go on.
};

/// Of the commands that write with DatasetWriter.
Leavings leaves_partial_file();

/// Runs `work` with a StopSignal in place. If it throws Error cancelled because a signal arrived,
/// says so on stderr and, with --json, on stdout.
/// \returns what `work` returns, or the exit code of the signal.
/// \throws whatever else `work` throws.
ExitCode run_interruptible(const GlobalOptions& global, const Leavings& left,
                           const std::function<ExitCode()>& work);

/// For `work` that leaves nothing behind, prints nothing to stdout, and may wait long where it
/// cannot look for signals (Loader::next()): the first signal ends the process, with the same words
/// and exit codes.
/// \param what  was stopped: the subject of the message.
/// \throws whatever `work` throws.
void run_until_signal(const GlobalOptions& global, const std::string& what,
                      const std::function<void()>& work);

}  // namespace cli
