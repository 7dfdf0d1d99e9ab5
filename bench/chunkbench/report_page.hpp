/// The results of a sweep as one HTML page that needs nothing else.
#pragma once

#include <cstddef>
#include <string>

#include "chunkbench/results.hpp"

namespace bench {

/// Writes the page and returns its bytes: no script, nothing fetched, and a policy in it that
/// forbids both. \throws chunkio::Error output_exists, no_space, io_failed.
std::size_t write_report_page(const Results& results, const std::string& path, bool force);

}  // namespace bench
