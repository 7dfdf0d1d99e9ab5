#include <libdeflate.h>

#include <chunkio/version.hpp>

#include "base/digest.hpp"
#include "h5/library.hpp"

namespace chunkio {

std::string_view version() noexcept { return CHUNKIO_VERSION; }

std::vector<LibraryVersion> library_versions() {
  std::vector<LibraryVersion> versions{
      {.name = "HDF5", .version = h5::Library::version().text()},
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
