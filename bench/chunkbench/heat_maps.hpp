/// The heat maps of the report: for each order, source and number of threads a table with chunk
/// sizes to the right, cache sizes upwards, and a coloured cell with its value where they meet.
///
/// Pure functions; thread-safe. A section of which the results have nothing is left out.
#pragma once

#include "chunkbench/markup.hpp"
#include "chunkbench/results.hpp"

namespace bench {

/// Images/s.
void add_speeds(Markup& html, const Results& results);
/// Hit rates, predicted and measured.
void add_hit_rates(Markup& html, const Results& results);
/// Bytes read / bytes delivered, predicted and measured.
void add_amplifications(Markup& html, const Results& results);

}  // namespace bench
