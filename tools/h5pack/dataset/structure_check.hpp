/// Checks the structure of a file beyond what Dataset::open() refuses; needs no digests.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <chunkio/dataset.hpp>

namespace h5pack {

/// What contradicts itself: stored class counts and the labels, source rows that are negative or
/// named twice, packing options that are no JSON. One line each; empty if nothing does. Reads
/// labels and source rows; blocks on I/O. Polls StopSignal.
/// \throws chunkio::Error cancelled.
[[nodiscard]] std::vector<std::string> contradictions(const chunkio::Dataset& dataset);

/// Why the samples cannot be read to their end, if they cannot: for files without digests. Shows
/// progress unless `quiet`. Polls StopSignal.
/// \throws chunkio::Error cancelled.
[[nodiscard]] std::optional<std::string> unreadable_samples(const chunkio::Dataset& dataset,
                                                            bool quiet);

/// For commands that write a file again: what cannot be opened would be missing there.
/// \throws chunkio::Error corrupt_data naming the object, if there is one.
void refuse_damaged(const chunkio::DatasetInfo& info);

/// For commands that only read: says on stderr what cannot be opened.
void warn_of_damage(const chunkio::DatasetInfo& info);

}  // namespace h5pack
