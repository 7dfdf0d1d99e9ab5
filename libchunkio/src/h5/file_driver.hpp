/// What the file drivers of this library have in common, whatever becomes of reads and writes.
///
/// A driver is a table of functions through which libhdf5 reaches a file. Its functions are called
/// while Library::lock() is held, and no exception may leave them.
#pragma once

#include <cstddef>

#include <hdf5.h>
#if __has_include(<H5FDdevelop.h>)
#include <H5FDdevelop.h>  // H5FD_class_t, in newer versions
#endif

namespace chunkio::h5 {

/// What the file of a driver begins with. libhdf5 knows the first member only.
struct DriverFile {
  H5FD_t base = {};
  haddr_t end_of_allocation = 0;
  haddr_t end_of_file = 0;
};

/// What libhdf5 calls `file`. \pre File is a standard-layout type whose first member is a
/// DriverFile, and libhdf5 got that of such an object.
template <class File>
[[nodiscard]] File& as_driver_file(H5FD_t* file) {
  return *reinterpret_cast<File*>(file);
}

/// Whether offsets of the file system reach to the end of this range.
[[nodiscard]] bool in_file_range(haddr_t address, std::size_t size) noexcept;

/// H5FD_class_t::write of a driver that only reads.
herr_t refuse_to_write(H5FD_t* file, H5FD_mem_t type, hid_t transfer, haddr_t address,
                       std::size_t size, const void* buffer) noexcept;

/// A table in which open, close, query, read and write are still missing.
/// \param name   must outlive the table.
/// \param value  of this driver alone, 256 to 511.
[[nodiscard]] H5FD_class_t make_driver_class(const char* name, int value,
                                             std::size_t settings_bytes);

}  // namespace chunkio::h5
