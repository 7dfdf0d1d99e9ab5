/// The sections of the report, each with its heading and what is needed to read it.
///
/// Pure functions; thread-safe. A section of which the results have nothing is left out.
#pragma once

#include "chunkbench/markup.hpp"
#include "chunkbench/results.hpp"

namespace bench {

// Heat maps (heat_maps.cpp): for each order, source and number of threads a table with chunk sizes
// to the right, cache sizes upwards, and a coloured cell with its value where they meet.

/// Images/s.
void add_speeds(Markup& html, const Results& results);
/// Hit rates, predicted and measured.
void add_hit_rates(Markup& html, const Results& results);
/// Bytes read / bytes delivered, predicted and measured.
void add_amplifications(Markup& html, const Results& results);

// Tables (tables.cpp).

/// The best cell of each panel: what it reads each second beside what the machine gives, and what
/// its workers do.
void add_best_cells(Markup& html, const Results& results);
/// What a larger window buys, and what it costs.
void add_shuffle_quality(Markup& html, const Results& results);
/// The ladder from one file an image to the best way.
void add_ladder(Markup& html, const Results& results);

}  // namespace bench
