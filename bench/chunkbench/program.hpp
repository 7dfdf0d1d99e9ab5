/// How chunkbench and story end: every failure becomes one line and an exit code, those of h5pack.
#pragma once

#include <functional>
#include <string_view>

#include "command.hpp"

namespace bench {

struct Program {
  std::string_view name;
  std::string_view memory_options;  ///< Those that make do with less of it, in words.
};
inline constexpr Program kChunkbench = {"chunkbench", "--cache-bytes or --chunk-bytes"};

/// "chunkbench: MESSAGE" on stderr, control characters escaped, always one line.
void print_error(std::string_view message, const Program& program = kChunkbench);

/// What `work` returns; or reports what it throws.
[[nodiscard]] int run_or_report(const std::function<h5pack::ExitCode()>& work,
                                const Program& program = kChunkbench);

}  // namespace bench
