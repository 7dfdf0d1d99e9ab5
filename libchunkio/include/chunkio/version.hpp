/// Versions of chunkio and of the libraries that it works with, for reports of problems.
///
///     for (const auto& [name, version] : chunkio::library_versions()) {
///       std::printf("%s %s\n", name.c_str(), version.c_str());
///     }
///
/// Thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <chunkio/export.hpp>

namespace chunkio {

struct LibraryVersion {
  std::string name = {};     ///< "HDF5"
  std::string version = {};  ///< "1.10.8"
};

/// Of chunkio: "0.2.0".
[[nodiscard]] CHUNKIO_EXPORT std::string_view version() noexcept;

/// HDF5 as it runs; libdeflate, xxHash and the CUDA toolkit as chunkio was built with them. Without
/// CUDA if it was built without.
[[nodiscard]] CHUNKIO_EXPORT std::vector<LibraryVersion> library_versions();

}  // namespace chunkio
