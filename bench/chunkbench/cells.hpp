/// The cells of a sweep: which there are, in which order they take their trials, and what a trial
/// adds to one.
///
/// Pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "chunkbench/results.hpp"
#include "chunkbench/scratch_files.hpp"
#include "chunkbench/sweep_options.hpp"

namespace bench {

/// All cells, in the order chunk size, cache size, order, source, threads. Those that need no
/// measuring are `skipped` and say why: a window does not matter in sequential and random order, so
/// there the largest stands for all; some sources read no filtered chunks. Source h5dread has one
/// thread, since libhdf5 takes one lock for all.
[[nodiscard]] std::vector<Cell> make_cells(std::span<const ChunkSize> chunks,
                                           const SweepOptions& options);

/// Whether it is still to take trials.
[[nodiscard]] bool is_open(const Cell& cell);

/// Adds a trial to its cell, and brings what follows from all trials up to date.
struct Trial;
void add_trial(const Trial& trial, Cell& cell);

/// Cells in the order of their trials in a round: a permutation drawn from the seed and the round,
/// so that none always follows the same other one, with one in front that was in front least often.
/// \param cells        indices of those that take a trial.
/// \param times_first  for every cell, how often it was in front; brought up to date.
[[nodiscard]] std::vector<std::size_t> order_of_round(std::vector<std::size_t> cells,
                                                      std::int64_t round, std::uint64_t seed,
                                                      std::vector<std::int64_t>& times_first);

}  // namespace bench
