/// Reads rows of a dataset in any order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <chunkio/dataset.hpp>
#include <chunkio/tensor.hpp>

#include "cli/progress.hpp"

namespace h5pack {

/// Brings images to memory, one behind the other in the order of `rows`. They are read in the order
/// of the file, compared with their digests, and put to their places on the threads of the TBB
/// arena. Blocks on I/O; polls StopSignal.
/// \param rows    distinct, at least one.
/// \param layout  that the images get.
/// \param memory  bytes that reading may take: half of --memory-budget.
/// \param window  as many bytes as the images have.
/// \throws chunkio::Error cancelled, and as Loader.
void read_window(const chunkio::Dataset& dataset, const std::vector<std::int64_t>& rows,
                 chunkio::Layout layout, std::int64_t memory, std::span<std::byte> window,
                 cli::Progress& progress);

}  // namespace h5pack
