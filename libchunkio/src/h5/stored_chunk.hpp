/// One chunk as it is stored, read through any version of libhdf5.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <hdf5.h>

namespace chunkio::h5 {

/// \param start  first element of the chunk, along each axis.
/// \param mask  becomes that of the filters that were left out.
/// \pre the chunk takes at most room.size() bytes in the file.
/// \returns negative, with an error stack, if it has no storage or cannot be read.
inline herr_t read_stored_chunk(hid_t dataset, const hsize_t* start, std::uint32_t& mask,
                                std::span<std::byte> room) noexcept {
#if H5_VERSION_GE(2, 0, 0)
  std::size_t bytes = room.size();
  return H5Dread_chunk2(dataset, H5P_DEFAULT, start, &mask, room.data(), &bytes);
#else
  return H5Dread_chunk(dataset, H5P_DEFAULT, start, &mask, room.data());
#endif
}

}  // namespace chunkio::h5
