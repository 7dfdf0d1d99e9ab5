#include "cli/interruptible.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <stop_token>

#include <chunkio/error.hpp>

#include "cli/option_flags.hpp"
#include "cli/output.hpp"
#include "cli/stop_signal.hpp"

namespace cli {

Leavings leaves_partial_file() {
  return {.ended =
              "an output that was begun is left as after a kill: the same command with --resume or "
              "--force goes on"};
}

ExitCode run_interruptible(const GlobalOptions& global, const Leavings& left,
                           const std::function<ExitCode()>& work) {
  const StopSignal stop(left.ended);
  try {
    return work();
  } catch (const chunkio::Error& error) {
    if (error.code() != chunkio::ErrorCode::cancelled || StopSignal::received() == 0) throw;
    const std::string stopped =
        with_flags(error) + (left.stopped.empty() ? "" : "; " + left.stopped);
    print_failure(to_string(error.code()), stopped, global.json);
    return static_cast<ExitCode>(128 + StopSignal::received());
  }
}

void run_until_signal(const GlobalOptions& global, const std::string& what,
                      const std::function<void()>& work) {
  const StopSignal stop("");
  const StopSignalToken stopping;
  const std::stop_callback end(stopping.token(), [&] {
    // The line of a progress display has no end.
    if (!global.quiet && ::isatty(STDERR_FILENO) == 1) std::fputs("\n", stderr);
    print_failure(to_string(chunkio::ErrorCode::cancelled), what + " was stopped", global.json);
    // Without destructors: other threads are at work.
    std::_Exit(128 + StopSignal::received());
  });
  work();
}

}  // namespace cli
