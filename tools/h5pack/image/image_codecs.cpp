#include "h5pack/image/image_codecs.hpp"

#include <dlfcn.h>

#include <chunkio/error.hpp>

#include "h5pack/image/codecs_module.hpp"

namespace h5pack {

namespace {

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

bool has_codec(const std::string& extension) { return codecs().has(extension); }

}  // namespace h5pack
