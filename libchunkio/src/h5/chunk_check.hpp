/// What libhdf5 does not check before it hands out the rows of a chunk.
///
/// libhdf5 1.10.8 takes what the filters gave for a chunk whatever its size: of a shorter one it
/// delivers the memory behind it, and a crafted stream grows until memory ends. So each chunk is
/// decoded once here, into memory of a known size, before libhdf5 may read it. Without filters it
/// does the same to what the file stores of a chunk, up to 1.14.5 at least: there its size is
/// looked up.
#pragma once

#include <cstdint>
#include <string>

#include "h5/stored_array.hpp"

namespace chunkio::h5 {

/// Whether libhdf5 reads the chunks of the array, and check_chunks() can look into them: all of its
/// filters are among those of filters.hpp, or it has none and an index.
[[nodiscard]] bool has_checkable_chunks(const StoredArray& array) noexcept;

/// Bytes that checking takes, or decoding here (StoredArray::decoded_here), for the memory budget.
[[nodiscard]] std::int64_t chunk_check_bytes(const StoredArray& array);

/// Checks the chunks that hold rows [first, first + count), each of them once in the life of
/// `array`. \pre Library::lock() is held; has_checkable_chunks(array).
/// \throws Error corrupt_data naming the chunk, hdf5_failed, out_of_resources.
void check_chunks(const StoredArray& array, std::int64_t first, std::int64_t count,
                  const std::string& path);

}  // namespace chunkio::h5
