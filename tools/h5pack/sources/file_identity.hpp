/// Tells one HDF5 file from another, for runs that are resumed.
#pragma once

#include <string>

#include <chunkio/dataset.hpp>

namespace h5pack {

/// "uuid ..." of a file of this format, which is new for each file written; of another file its
/// size and time of change. Blocks on I/O.
[[nodiscard]] std::string file_identity(const chunkio::DatasetInfo& info);

}  // namespace h5pack
