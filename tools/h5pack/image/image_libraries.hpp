/// The libraries behind images: their versions, their formats, their threads.
#pragma once

#include <string>
#include <vector>

#include <chunkio/version.hpp>

namespace h5pack {

/// libjpeg-turbo and OpenCV. Pure.
[[nodiscard]] std::vector<chunkio::LibraryVersion> image_libraries();

/// "JPEG, PNG, ...": what can be decoded. Thread-safe.
/// \throws chunkio::Error out_of_resources if OpenCV's codecs cannot be loaded.
[[nodiscard]] std::string image_formats_text();

/// Keeps OpenCV from starting threads of its own: images are decoded in parallel, each on one
/// thread. For the whole process.
void use_one_thread_an_image();

}  // namespace h5pack
