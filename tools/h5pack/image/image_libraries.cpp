#include "h5pack/image/image_libraries.hpp"

#include <array>
#include <cstddef>
#include <cstdio>
#include <utility>

// jpeglib.h uses FILE without including what declares it.
#include <jpeglib.h>
#include <opencv2/core/utility.hpp>

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

}  // namespace

std::vector<chunkio::LibraryVersion> image_libraries() {
  return {{.name = kJpegName, .version = kJpegVersion},
          {.name = "OpenCV", .version = cv::getVersionString()}};
}

std::string image_formats_text() {
  std::string text = "JPEG";
  static constexpr std::array<std::pair<const char*, const char*>, 5> kFormats{
      {{"PNG", ".png"}, {"PNM", ".ppm"}, {"BMP", ".bmp"}, {"TIFF", ".tif"}, {"WebP", ".webp"}}};
  for (const auto& [format, extension] : kFormats) {
    if (has_codec(extension)) text += std::string(", ") + format;
  }
  return text;
}

void use_one_thread_an_image() { cv::setNumThreads(1); }

}  // namespace h5pack
