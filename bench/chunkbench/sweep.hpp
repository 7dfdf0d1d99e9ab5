/// The sweep: every combination of chunk size, cache size, order, source and threads measured
/// beside the others.
///
/// Cells take trials, round after round, in an order drawn anew for each (order_of_round() of
/// cells.hpp); a cell whose rank is certain (pruning.hpp) takes no more. The results file is
/// written as the sweep goes on, and another run can continue from it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "chunkbench/sweep_options.hpp"

namespace bench {

/// Runs it, says on stdout what came out, and leaves the results in options.output.
/// \param notes  what could not be done so far; goes to the results.
/// \returns how many cells failed; 0: all is well.
/// \throws chunkio::Error cancelled (the message says what of it the results keep, and how to go
///         on); invalid_argument (an output is the file itself, or the other output); and whatever
///         keeps all of it from being done.
std::size_t run_sweep(SweepOptions options, std::vector<std::string> notes);

}  // namespace bench
