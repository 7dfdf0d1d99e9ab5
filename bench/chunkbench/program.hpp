/// How chunkbench ends: every failure becomes one line and an exit code, those of h5pack.
#pragma once

#include <functional>
#include <string_view>

#include "command.hpp"

namespace bench {

/// "chunkbench: MESSAGE" on stderr, control characters escaped, always one line.
void print_error(std::string_view message);

/// What `work` returns; or reports what it throws.
[[nodiscard]] int run_or_report(const std::function<h5pack::ExitCode()>& work);

}  // namespace bench
