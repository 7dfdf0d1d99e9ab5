/// How chunkbench reports failures.
#pragma once

#include "cli/run_main.hpp"

namespace bench {

inline const cli::Reporting kChunkbench = {.program = "chunkbench",
                                           .less_memory = "smaller --cache-bytes or --chunk-bytes"};

}  // namespace bench
