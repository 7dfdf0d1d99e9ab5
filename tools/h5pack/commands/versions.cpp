#include "h5pack/commands/versions.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <utility>
#include <vector>

// jpeglib.h uses FILE without including what declares it.
#include <jpeglib.h>
#include <opencv2/core/utility.hpp>
#include <tbb/version.h>

#include <chunkio/error.hpp>
#include <chunkio/version.hpp>

#include "cli/text_layout.hpp"
#include "h5pack/image/image_codecs.hpp"

namespace h5pack {
namespace {

#define H5PACK_TEXT_OF(value) #value
#define H5PACK_TEXT(value) H5PACK_TEXT_OF(value)

#ifdef LIBJPEG_TURBO_VERSION
constexpr const char* kJpegName = "libjpeg-turbo";
constexpr const char* kJpegVersion = H5PACK_TEXT(LIBJPEG_TURBO_VERSION);
#else
constexpr const char* kJpegName = "libjpeg";
constexpr const char* kJpegVersion = H5PACK_TEXT(JPEG_LIB_VERSION);
#endif

std::string formats_text() {
  std::string text = "JPEG";
  static constexpr std::array<std::pair<const char*, const char*>, 5> kFormats{
      {{"PNG", ".png"}, {"PNM", ".ppm"}, {"BMP", ".bmp"}, {"TIFF", ".tif"}, {"WebP", ".webp"}}};
  for (const auto& [format, extension] : kFormats) {
    if (has_codec(extension)) text += std::string(", ") + format;
  }
  return text;
}

}  // namespace

std::string versions_text() {
  std::vector<chunkio::LibraryVersion> libraries = chunkio::library_versions();
  const auto cuda = std::find_if(libraries.begin(), libraries.end(),
                                 [](const auto& library) { return library.name == "CUDA"; });
  const std::string cuda_version = cuda == libraries.end() ? "none" : cuda->version;
  if (cuda != libraries.end()) libraries.erase(cuda);
  // What runs may be newer than what this was built with.
  libraries.push_back({.name = "oneTBB", .version = TBB_runtime_version()});
  libraries.push_back({.name = kJpegName, .version = kJpegVersion});
  libraries.push_back({.name = "OpenCV", .version = cv::getVersionString()});
  std::string text = "h5pack " + std::string(chunkio::version()) + "\n";
  for (const auto& [name, version] : libraries) text += cli::labelled(name, version, false);
  text += cli::labelled("CUDA", cuda_version, false);
  try {
    return text + cli::labelled("images", formats_text(), false);
  } catch (const chunkio::Error& error) {
    return text + cli::labelled("images", std::string("JPEG; ") + error.what(), false);
  }
}

}  // namespace h5pack
