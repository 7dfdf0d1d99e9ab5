#include "h5pack/image/codecs_module.hpp"

#include <dlfcn.h>

#include <cstdarg>

#include <opencv2/imgcodecs.hpp>

namespace {

/// Of the image that this thread decodes.
thread_local bool libtiff_failed = false;

void note_libtiff_error(void* /*file*/, const char* /*module*/, const char* /*format*/,
                        std::va_list /*values*/) {
  libtiff_failed = true;
}

/// OpenCV reads TIFF files with libtiff and leaves black what libtiff calls damaged. It sets the
/// handler of errors without a file, and this one with a file is called beside it. Looked up, since
/// OpenCV may bring a libtiff of its own inside; then such errors stay hidden.
bool listen_to_libtiff() {
  using Handler = void (*)(void*, const char*, const char*, std::va_list);
  using SetHandler = Handler (*)(Handler);
  if (auto* const set =
          reinterpret_cast<SetHandler>(::dlsym(RTLD_DEFAULT, "TIFFSetErrorHandlerExt"))) {
    set(note_libtiff_error);
    return true;
  }
  return false;
}

}  // namespace

void h5pack_decode_image(const cv::Mat& bytes, int flags, cv::Mat& image) {
  [[maybe_unused]] static const bool listening = listen_to_libtiff();
  libtiff_failed = false;
  cv::imdecode(bytes, flags, &image);
  if (libtiff_failed) image.release();
}

bool h5pack_encode_image(const std::string& extension, const cv::Mat& image,
                         std::vector<unsigned char>& bytes) {
  return cv::imencode(extension, image, bytes);
}

bool h5pack_has_codec(const std::string& extension) { return cv::haveImageWriter(extension); }
