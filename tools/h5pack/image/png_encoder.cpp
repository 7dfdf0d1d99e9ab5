#include "h5pack/image/png_encoder.hpp"

#include <string>

#include <opencv2/core.hpp>
#include <opencv2/imgproc.hpp>

#include <chunkio/error.hpp>

#include "h5pack/image/axis_order.hpp"
#include "h5pack/image/image_codecs.hpp"

namespace h5pack {

PngEncoder::PngEncoder(ImageSize size, std::int64_t channels, chunkio::Layout layout)
    : size_(size), channels_(channels), layout_(layout) {
  if (channels != 1 && channels != 3 && channels != 4) {
    throw chunkio::Error(chunkio::ErrorCode::unsupported,
                         "images with " + std::to_string(channels) +
                             " channels cannot be PNG files; only 1, 3 and 4 can");
  }
  interleaved_.resize(static_cast<std::size_t>(size.pixels() * channels));
}

std::span<const unsigned char> PngEncoder::encode(std::span<const std::byte> pixels) {
  reorder_axes(pixels, size_, channels_, layout_, chunkio::Layout::nhwc,
               std::as_writable_bytes(std::span(interleaved_)));
  cv::Mat image(static_cast<int>(size_.height), static_cast<int>(size_.width),
                CV_8UC(static_cast<int>(channels_)), interleaved_.data());
  // OpenCV takes BGR and BGRA.
  if (channels_ == 3) cv::cvtColor(image, image, cv::COLOR_RGB2BGR);
  if (channels_ == 4) cv::cvtColor(image, image, cv::COLOR_RGBA2BGRA);
  try {
    if (encode_image(".png", image, file_)) return file_;
  } catch (const cv::Exception&) {
    // Said below: what OpenCV says takes several lines.
  }
  throw chunkio::Error(chunkio::ErrorCode::unsupported,
                       "an image of " + to_string(size_) + " pixels cannot be written as PNG");
}

}  // namespace h5pack
