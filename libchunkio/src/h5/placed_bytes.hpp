/// Datasets that lie in one run, so that what they hold is written by position, without libhdf5.
/// All functions are called while Library::lock() is held.
#pragma once

#include <cstdint>
#include <string>

#include <hdf5.h>

#include <chunkio/tensor.hpp>

#include "h5/handle.hpp"

namespace chunkio::h5 {

/// A dataset's bytes in the file. Without any it has no place, and both are 0.
struct PlacedBytes {
  std::int64_t offset = 0;
  std::int64_t bytes = 0;

  friend bool operator==(const PlacedBytes&, const PlacedBytes&) = default;
};

/// Creates a dataset in one run, without values, and the groups on the way to it.
/// \param parent  file or group. \param type  not to be closed. \throws Error hdf5_failed.
[[nodiscard]] DatasetId create_in_one_run(hid_t parent, const std::string& name, hid_t type,
                                          const Shape& shape, const std::string& path);

/// \param action  for messages: "open dataset data of". \throws Error hdf5_failed.
[[nodiscard]] PlacedBytes place_of(const DatasetId& dataset, const std::string& action,
                                   const std::string& path);
/// The place of a new dataset, which is closed. \throws Error hdf5_failed.
[[nodiscard]] PlacedBytes finish_in_one_run(DatasetId dataset, const std::string& path);

}  // namespace chunkio::h5
