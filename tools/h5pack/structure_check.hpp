/// What of a file can be checked without a digest, beyond what Dataset::open() refuses.
#pragma once

#include <string>
#include <vector>

#include <chunkio/dataset.hpp>

namespace h5pack {

/// What contradicts itself: stored class counts and the labels, source rows that are negative or
/// named twice, packing options that are no JSON. One line each; empty if nothing does. Reads
/// labels and source rows; blocks on I/O. Polls StopSignal.
/// \throws chunkio::Error cancelled.
[[nodiscard]] std::vector<std::string> contradictions(const chunkio::Dataset& dataset);

/// Labels and fields that cannot be read to their end, one line each. Reads all of them, in blocks
/// of bounded size. Polls StopSignal.
/// \throws chunkio::Error cancelled.
[[nodiscard]] std::vector<std::string> unreadable_fields(const chunkio::Dataset& dataset);

}  // namespace h5pack
