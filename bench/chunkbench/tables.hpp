/// The tables of the report, each with its heading and what is needed to read it.
///
/// Pure functions; thread-safe. A section of which the results have nothing is left out.
#pragma once

#include "chunkbench/markup.hpp"
#include "chunkbench/results.hpp"

namespace bench {

/// The best cell of each panel: what it reads each second beside what the machine gives, and what
/// its workers do.
void add_best_cells(Markup& html, const Results& results);
/// What a larger window buys, and what it costs.
void add_shuffle_quality(Markup& html, const Results& results);
/// The ladder from one file an image to the best way.
void add_ladder(Markup& html, const Results& results);

}  // namespace bench
