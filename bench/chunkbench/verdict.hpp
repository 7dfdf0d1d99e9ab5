/// What a sweep found, in plain words.
///
/// Pure functions; thread-safe.
#pragma once

#include <string>
#include <vector>

#include "chunkbench/results.hpp"

namespace bench {

struct Verdict {
  /// "Chunks of 4 MiB and a window of 256 MiB: 41,200 images/s, 93.4 % of the disk."
  std::string headline = {};
  std::string detail = {};  ///< How sure that is; may be empty.
};

[[nodiscard]] Verdict verdict_of(const Results& results);

/// What a reader must know before believing the rest: cells that are missing or failed. May be
/// empty.
[[nodiscard]] std::vector<std::string> warnings_of(const Results& results);

}  // namespace bench
