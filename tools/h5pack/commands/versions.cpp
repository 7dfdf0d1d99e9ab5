#include "h5pack/commands/versions.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <tbb/version.h>

#include <chunkio/error.hpp>
#include <chunkio/version.hpp>

#include "cli/text_layout.hpp"
#include "h5pack/image/image_libraries.hpp"

namespace h5pack {

std::string versions_text() {
  std::vector<chunkio::LibraryVersion> libraries = chunkio::library_versions();
  const auto cuda = std::find_if(libraries.begin(), libraries.end(),
                                 [](const auto& library) { return library.name == "CUDA"; });
  const std::string cuda_version = cuda == libraries.end() ? "none" : cuda->version;
  if (cuda != libraries.end()) libraries.erase(cuda);
  // What runs may be newer than what this was built with.
  libraries.push_back({.name = "oneTBB", .version = TBB_runtime_version()});
  for (chunkio::LibraryVersion& library : image_libraries()) {
    libraries.push_back(std::move(library));
  }
  std::string text = "h5pack " + std::string(chunkio::version()) + "\n";
  for (const auto& [name, version] : libraries) text += cli::labelled(name, version, false);
  text += cli::labelled("CUDA", cuda_version, false);
  try {
    return text + cli::labelled("images", image_formats_text(), false);
  } catch (const chunkio::Error& error) {
    return text + cli::labelled("images", std::string("JPEG; ") + error.what(), false);
  }
}

}  // namespace h5pack
