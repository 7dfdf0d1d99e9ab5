/// The tables of the report, each with its heading and what is needed to read it. A section of
/// which the results have nothing is empty.
///
/// Pure functions; thread-safe.
#pragma once

#include "chunkbench/markup.hpp"
#include "chunkbench/results.hpp"

namespace bench {

/// The best cell of each panel: what it reads each second beside what the machine gives, and what
/// its workers do.
[[nodiscard]] Markup best_section(const Results& results);
/// What a larger window buys, and what it costs.
[[nodiscard]] Markup shuffle_section(const Results& results);
/// The ladder from one file an image to the best way.
[[nodiscard]] Markup ladder_section(const Results& results);
/// Every cell with all of its numbers.
[[nodiscard]] Markup cell_section(const Results& results);

}  // namespace bench
