/// Rows of a stored array, read through libhdf5.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "h5/stored_array.hpp"

namespace chunkio::h5 {

/// Reads rows [first, first + count) into `out`, which has exactly their size. Takes
/// Library::lock().
/// \param path  of the file, for messages.
/// \throws Error invalid_argument (range, size), corrupt_data (see check_chunks), unsupported (a
///         number that the delivered type cannot hold, or that scaling does not allow),
///         hdf5_failed, out_of_resources.
void read_rows(const StoredArray& array, std::int64_t first, std::int64_t count,
               std::span<std::byte> out, const std::string& path);

/// Drops what libhdf5 keeps of the array: decoded chunks, and parts of their index. To be called
/// while Library::lock() is held.
void forget_rows(const StoredArray& array) noexcept;

/// Bytes that read_rows() takes to scale pixels, for the memory budget.
[[nodiscard]] std::int64_t scaling_bytes(const StoredArray& array) noexcept;

/// Checks a request for rows of `name`. \param out_bytes  of the buffer.
/// \throws Error invalid_argument.
void check_request(std::int64_t num_rows, std::int64_t first, std::int64_t count,
                   std::size_t row_bytes, std::size_t out_bytes, const std::string& name,
                   const std::string& path);

}  // namespace chunkio::h5
