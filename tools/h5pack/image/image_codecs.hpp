/// OpenCV's codecs, loaded when the first image needs them; and the libraries behind images.
///
/// They come with more than a hundred shared libraries, which take a tenth of a second and fifty
/// megabytes to load: longer than h5pack info takes altogether, and a fifth of what packing
/// CIFAR-10 takes. JPEG files, records and HDF5 files need none of them.
#pragma once

#include <string>
#include <vector>

#include <opencv2/core.hpp>

#include <chunkio/version.hpp>

namespace h5pack {

/// cv::imdecode: `image` is empty if the bytes are no image. Thread-safe.
/// \throws chunkio::Error out_of_resources if the codecs cannot be loaded; cv::Exception.
void decode_image(const cv::Mat& bytes, int flags, cv::Mat& image);

/// cv::imencode: false if it cannot be done. Thread-safe.
/// \throws as decode_image().
bool encode_image(const std::string& extension, const cv::Mat& image,
                  std::vector<unsigned char>& bytes);

/// libjpeg-turbo and OpenCV. Pure.
[[nodiscard]] std::vector<chunkio::LibraryVersion> image_libraries();

/// "JPEG, PNG, ...": what can be decoded. Thread-safe.
/// \throws chunkio::Error out_of_resources if OpenCV's codecs cannot be loaded.
[[nodiscard]] std::string image_formats_text();

/// Keeps OpenCV from starting threads of its own: images are decoded in parallel, each on one
/// thread. For the whole process.
void use_one_thread_an_image();

}  // namespace h5pack
