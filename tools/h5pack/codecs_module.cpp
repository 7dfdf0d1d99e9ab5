#include "codecs_module.hpp"

#include <opencv2/imgcodecs.hpp>

void h5pack_decode_image(const cv::Mat& bytes, int flags, cv::Mat& picture) {
  cv::imdecode(bytes, flags, &picture);
}

bool h5pack_encode_image(const std::string& extension, const cv::Mat& picture,
                         std::vector<unsigned char>& bytes) {
  return cv::imencode(extension, picture, bytes);
}
