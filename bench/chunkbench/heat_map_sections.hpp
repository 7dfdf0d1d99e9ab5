/// The heat maps of the report, each with its heading and what is needed to read it. A section of
/// which the results have nothing is empty.
///
/// Pure functions; thread-safe.
#pragma once

#include "chunkbench/markup.hpp"
#include "chunkbench/results.hpp"

namespace bench {

/// Images/s over chunk and cache size: a heat map for each order, source and number of threads.
[[nodiscard]] Markup speed_section(const Results& results);
/// Hit rates, predicted and measured.
[[nodiscard]] Markup hit_rate_section(const Results& results);
/// Bytes read / bytes delivered, predicted and measured.
[[nodiscard]] Markup amplification_section(const Results& results);

}  // namespace bench
