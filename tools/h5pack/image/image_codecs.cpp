#include "h5pack/image/image_codecs.hpp"

#include <dlfcn.h>

#include <array>
#include <cstdio>
#include <utility>

// jpeglib.h uses FILE without including what declares it.
#include <jpeglib.h>
#include <opencv2/core/utility.hpp>

#include <chunkio/error.hpp>

#include "h5pack/image/codecs_module.hpp"

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

struct Codecs {
  decltype(&h5pack_decode_image) decode = nullptr;
  decltype(&h5pack_encode_image) encode = nullptr;
  decltype(&h5pack_has_codec) has = nullptr;
};

template <class Function>
void find(void* module, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(module, name));
}

Codecs load() {
  // Found by the run path of this program; stays until the process ends.
  void* const module = ::dlopen(kCodecsModule, RTLD_NOW | RTLD_LOCAL);
  Codecs codecs;
  if (module != nullptr) {
    find(module, "h5pack_decode_image", codecs.decode);
    find(module, "h5pack_encode_image", codecs.encode);
    find(module, "h5pack_has_codec", codecs.has);
  }
  if (codecs.decode == nullptr || codecs.encode == nullptr || codecs.has == nullptr) {
    const char* const reason = ::dlerror();
    throw chunkio::Error(chunkio::ErrorCode::out_of_resources,
                         std::string("cannot load what decodes images other than JPEG: ") +
                             (reason != nullptr ? reason : kCodecsModule) +
                             "; install h5pack whole (cmake --install)");
  }
  // OpenCV lists its codecs when it is first asked for one: here, before threads share the list.
  codecs.has(".png");
  return codecs;
}

const Codecs& codecs() {
  static const Codecs loaded = load();
  return loaded;
}

}  // namespace

void decode_image(const cv::Mat& bytes, int flags, cv::Mat& image) {
  codecs().decode(bytes, flags, image);
}

bool encode_image(const std::string& extension, const cv::Mat& image,
                  std::vector<unsigned char>& bytes) {
  return codecs().encode(extension, image, bytes);
}

std::vector<chunkio::LibraryVersion> image_libraries() {
  return {{.name = kJpegName, .version = kJpegVersion},
          {.name = "OpenCV", .version = cv::getVersionString()}};
}

std::string image_formats_text() {
  std::string text = "JPEG";
  static constexpr std::array<std::pair<const char*, const char*>, 5> kFormats{
      {{"PNG", ".png"}, {"PNM", ".ppm"}, {"BMP", ".bmp"}, {"TIFF", ".tif"}, {"WebP", ".webp"}}};
  for (const auto& [format, extension] : kFormats) {
    if (codecs().has(extension)) text += std::string(", ") + format;
  }
  return text;
}

void use_one_thread_an_image() { cv::setNumThreads(1); }

}  // namespace h5pack
