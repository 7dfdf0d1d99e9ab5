/// What may be said of the sizes that images had before they were packed.
#pragma once

#include <cstdint>

#include <chunkio/dataset.hpp>

namespace chunkio::h5 {

/// Whether `sizes` can be those of `num_samples` images. Thread-safe, without libhdf5.
[[nodiscard]] bool are_possible(const SourceSizes& sizes, std::int64_t num_samples);

}  // namespace chunkio::h5
