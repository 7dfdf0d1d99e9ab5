/// The sweep: every combination of chunk size, cache size, order, source and threads measured
/// beside the others.
///
/// Cells take turns, round after round, in an order drawn anew for each (order_of_round); a cell
/// whose rank is certain (settle.hpp) takes no more. The results file is written as the sweep goes
/// on, and another run can continue from it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "results.hpp"
#include "scratch_files.hpp"
#include "sweep_options.hpp"

namespace bench {

/// All cells, in the order chunk size, cache size, order, source, threads. Those that need no
/// measuring are `skipped` and say why: a window does not matter in sequential and random order, so
/// there the largest stands for all; some sources read no filtered chunks. Source h5dread has one
/// thread, since libhdf5 takes one lock for all.
[[nodiscard]] std::vector<Cell> make_cells(std::span<const ChunkSize> chunks,
                                           const SweepOptions& options);

/// Takes over what `before` has measured. Cells that failed are pending again.
/// \param name  of the file that `before` came from.
/// \throws chunkio::Error invalid_argument: it is of another sweep; names the first difference.
void continue_from(const Results& before, const std::string& name, Results& now);

/// Adds a turn to its cell, and brings what follows from all turns up to date.
struct Turn;
void add_turn(const Turn& turn, Cell& cell);

/// Cells in the order of their turns in a round: a permutation drawn from the seed and the round,
/// so that none always follows the same other one, with one in front that was in front least often.
/// \param cells        indices of those that take a turn.
/// \param times_first  for every cell, how often it was in front; brought up to date.
[[nodiscard]] std::vector<std::size_t> order_of_round(std::vector<std::size_t> cells,
                                                      std::int64_t round, std::uint64_t seed,
                                                      std::vector<std::int64_t>& times_first);

/// Runs it, says on stdout what came out, and leaves the results in options.output.
/// \param notes  what could not be done so far; goes to the results.
/// \returns how many cells failed; 0: all is well.
/// \throws chunkio::Error cancelled (the message says what of it the results keep, and how to go
///         on); invalid_argument (an output is the file itself, or the other output); and whatever
///         keeps all of it from being done.
std::size_t run_sweep(const SweepOptions& options, std::vector<std::string> notes);

}  // namespace bench
