/// The interface of the module with OpenCV's codecs; see image_codecs.hpp.
#pragma once

#include <string>
#include <vector>

#include <opencv2/core.hpp>

namespace h5pack {
inline constexpr const char* kCodecsModule = "h5pack_codecs.so";
}

// By plain names, so that they can be looked up.
extern "C" {
[[gnu::visibility("default")]] void h5pack_decode_image(const cv::Mat& bytes, int flags,
                                                        cv::Mat& image);
[[gnu::visibility("default")]] bool h5pack_encode_image(const std::string& extension,
                                                        const cv::Mat& image,
                                                        std::vector<unsigned char>& bytes);
[[gnu::visibility("default")]] bool h5pack_has_codec(const std::string& extension);
}
