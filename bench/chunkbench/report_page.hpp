/// The results of a sweep as one HTML page that needs nothing else.
#pragma once

#include <string>

#include "chunkbench/results.hpp"

namespace bench {

/// The page: no script, nothing fetched, and a policy in it that forbids both. Pure; thread-safe.
[[nodiscard]] std::string report_page(const Results& results);

}  // namespace bench
