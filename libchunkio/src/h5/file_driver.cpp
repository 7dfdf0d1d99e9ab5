#include "h5/file_driver.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>

namespace chunkio::h5 {
namespace {

constexpr auto kHighestAddress = static_cast<haddr_t>(std::numeric_limits<std::int64_t>::max());

haddr_t get_end_of_allocation(const H5FD_t* file, H5FD_mem_t /*type*/) {
  return reinterpret_cast<const DriverFile*>(file)->end_of_allocation;
}

herr_t set_end_of_allocation(H5FD_t* file, H5FD_mem_t /*type*/, haddr_t address) {
  as_driver_file<DriverFile>(file).end_of_allocation = address;
  return 0;
}

haddr_t get_end_of_file(const H5FD_t* file, H5FD_mem_t /*type*/) {
  return reinterpret_cast<const DriverFile*>(file)->end_of_file;
}

}  // namespace

bool in_file_range(haddr_t address, std::size_t size) noexcept {
  return address <= kHighestAddress && size <= kHighestAddress - address;
}

herr_t refuse_to_write(H5FD_t* /*file*/, H5FD_mem_t /*type*/, hid_t /*transfer*/,
                       haddr_t /*address*/, std::size_t /*size*/, const void* /*buffer*/) noexcept {
  return -1;
}

H5FD_class_t make_driver_class(const char* name, [[maybe_unused]] int value,
                               std::size_t settings_bytes) {
  H5FD_class_t driver = {};
#if H5_VERSION_GE(1, 13, 0)
  driver.version = H5FD_CLASS_VERSION;
  driver.value = static_cast<H5FD_class_value_t>(value);
#endif
  driver.name = name;
  driver.maxaddr = kHighestAddress;
  driver.fc_degree = H5F_CLOSE_WEAK;
  driver.fapl_size = settings_bytes;
  driver.get_eoa = get_end_of_allocation;
  driver.set_eoa = set_end_of_allocation;
  driver.get_eof = get_end_of_file;
  const H5FD_mem_t dichotomy[] = H5FD_FLMAP_DICHOTOMY;
  std::copy(std::begin(dichotomy), std::end(dichotomy), std::begin(driver.fl_map));
  return driver;
}

}  // namespace chunkio::h5
