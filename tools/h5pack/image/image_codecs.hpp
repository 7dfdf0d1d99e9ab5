/// OpenCV's codecs, loaded when the first image needs them.
///
/// They come with more than a hundred shared libraries, which take a tenth of a second and fifty
/// megabytes to load: longer than h5pack info takes altogether, and a fifth of what packing
/// CIFAR-10 takes. JPEG files, records and HDF5 files need none of them.
#pragma once

#include <string>
#include <vector>

#include <opencv2/core.hpp>

namespace h5pack {

/// cv::imdecode: `image` is empty if the bytes are no image. Thread-safe.
/// \throws chunkio::Error out_of_resources if the codecs cannot be loaded; cv::Exception.
void decode_image(const cv::Mat& bytes, int flags, cv::Mat& image);

/// cv::imencode: false if it cannot be done. Thread-safe.
/// \throws as decode_image().
bool encode_image(const std::string& extension, const cv::Mat& image,
                  std::vector<unsigned char>& bytes);

/// Whether OpenCV was built with what `extension` (".webp") stands for. Thread-safe.
/// \throws as decode_image().
bool has_codec(const std::string& extension);

}  // namespace h5pack
