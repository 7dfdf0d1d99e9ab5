/// HDF5's types of the elements of arrays, and ours.
///
/// All functions are called while Library::lock() is held.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <hdf5.h>

#include <chunkio/tensor.hpp>

namespace chunkio::h5 {

/// The element type of an HDF5 type, if it is one of the ten (any byte order; libhdf5 converts). Of
/// an enumeration, such as h5py's bool, that of its values.
[[nodiscard]] std::optional<DType> element_type(hid_t type);
[[nodiscard]] constexpr bool is_integer(DType dtype) noexcept { return dtype < DType::float32; }
/// The type in memory, native byte order. Not to be closed.
[[nodiscard]] hid_t memory_type(DType dtype);
/// "uint8", "compound", "string", ...
[[nodiscard]] std::string describe_type(hid_t type);

/// A text of a fixed length without its padding.
[[nodiscard]] std::string_view unpadded(std::string_view text, H5T_str_t padding) noexcept;

/// Gives back what libhdf5 allocated for variable-length elements when it read `data`.
void reclaim_variable_length(hid_t type, hid_t space, void* data) noexcept;

}  // namespace chunkio::h5
