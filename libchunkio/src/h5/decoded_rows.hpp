/// Rows of datasets with a filter that libhdf5 need not have (LZF): read without its pipeline.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <hdf5.h>

#include "h5/stored_array.hpp"

namespace chunkio::h5 {

/// Reads rows [first, first + count) into `out`, which has exactly their size, as H5Dread would.
/// Each call decodes the chunks that it touches.
///
/// \param dtype     of `out`; not smaller than what is stored.
/// \param transfer  property list with what conversion of elements is to do.
/// \pre Library::lock() is held; array.decoded_here; the rows lie in the dataset.
/// \returns negative, with an error stack, if elements cannot be converted.
/// \throws Error corrupt_data naming the chunk, hdf5_failed, out_of_resources.
[[nodiscard]] herr_t read_decoded_rows(const StoredArray& array, DType dtype, std::int64_t first,
                                       std::int64_t count, std::span<std::byte> out, hid_t transfer,
                                       const std::string& path);

}  // namespace chunkio::h5
