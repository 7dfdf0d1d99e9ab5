/// How programs end: every failure becomes one line on stderr and an exit code.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "cli/command.hpp"

namespace cli {

struct Reporting {
  std::string_view program = "h5pack";
  std::string_view less_memory = "smaller sizes or fewer threads";  ///< What makes do with less.
  bool json = false;                                                ///< An object on stdout, too.
  std::function<bool(const std::string& flag)> accepted = {};       ///< As with_flags() takes it.
};

/// What `work` returns; or reports what it throws.
[[nodiscard]] ExitCode run_or_report(const std::function<ExitCode()>& work,
                                     const Reporting& reporting);

/// All of main(): standard streams that are safe to use, `work` as above, and an end without exit
/// handlers.
[[noreturn]] void run_main(const std::function<ExitCode()>& work, const Reporting& reporting);

}  // namespace cli
