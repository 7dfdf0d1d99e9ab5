/// Return values of libhdf5 as exceptions.
#pragma once

#include <stdexcept>
#include <string>

namespace bench {

template <class Id>
Id check_hdf5(Id id, const char* what) {
  if (id < 0) throw std::runtime_error(std::string("HDF5: ") + what + " failed");
  return id;
}

}  // namespace bench
