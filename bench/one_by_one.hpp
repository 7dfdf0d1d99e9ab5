/// The usual way to read HDF5: a call for each picture.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <chunkio/chunk_layout.hpp>

namespace bench {

/// One H5Dread a sample, rows in the given order, in a file opened anew with the given chunk cache.
void read_one_by_one(const std::string& path, const chunkio::ChunkCacheSettings& cache,
                     std::span<const std::int64_t> order, std::span<std::byte> ring,
                     std::size_t sample_bytes);

}  // namespace bench
