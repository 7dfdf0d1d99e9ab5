#include <hdf5.h>
#include <libdeflate.h>

#include <chunkio/version.hpp>

#include "base/digest.hpp"
#include "h5/library.hpp"

namespace chunkio {

std::string_view version() noexcept { return CHUNKIO_VERSION; }

std::vector<LibraryVersion> library_versions() {
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  const auto guard = h5::Library::lock();
  H5get_libversion(&major, &minor, &release);
  std::vector<LibraryVersion> versions{
      {.name = "HDF5",
       .version =
           std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(release)},
      {.name = "libdeflate", .version = LIBDEFLATE_VERSION_STRING},
      {.name = "xxHash",
       .version = std::to_string(XXH_VERSION_MAJOR) + "." + std::to_string(XXH_VERSION_MINOR) +
                  "." + std::to_string(XXH_VERSION_RELEASE)}};
#ifdef CHUNKIO_CUDA_VERSION
  versions.push_back({.name = "CUDA", .version = CHUNKIO_CUDA_VERSION});
#endif
  return versions;
}

}  // namespace chunkio
