#include "h5pack/image/png_encoder.hpp"

#include <string>

#include <opencv2/core.hpp>

#include <chunkio/error.hpp>

#include "h5pack/image/image_codecs.hpp"

namespace h5pack {

PngEncoder::PngEncoder(ImageSize size, std::int64_t channels, chunkio::Layout layout)
    : size_(size), channels_(static_cast<std::size_t>(channels)), layout_(layout) {
  if (channels != 1 && channels != 3 && channels != 4) {
    throw chunkio::Error(chunkio::ErrorCode::unsupported,
                         "images with " + std::to_string(channels) +
                             " channels cannot be PNG files; only 1, 3 and 4 can");
  }
  interleaved_.resize(static_cast<std::size_t>(size.pixels()) * channels_);
}

std::span<const unsigned char> PngEncoder::encode(std::span<const std::byte> pixels) {
  const auto area = static_cast<std::size_t>(size_.pixels());
  const bool last = layout_ == chunkio::Layout::nhwc;
  for (std::size_t c = 0; c < channels_; ++c) {
    // OpenCV takes BGR and BGRA.
    const std::size_t target = channels_ >= 3 && c < 3 ? 2 - c : c;
    const std::byte* const from = pixels.data() + (last ? c : c * area);
    const std::size_t step = last ? channels_ : 1;
    for (std::size_t i = 0; i < area; ++i) {
      interleaved_[i * channels_ + target] = std::to_integer<unsigned char>(from[i * step]);
    }
  }
  const cv::Mat image(static_cast<int>(size_.height), static_cast<int>(size_.width),
                      CV_8UC(static_cast<int>(channels_)), interleaved_.data());
  try {
    if (encode_image(".png", image, file_)) return file_;
  } catch (const cv::Exception&) {
    // Said below: what OpenCV says takes several lines.
  }
  throw chunkio::Error(chunkio::ErrorCode::unsupported,
                       "an image of " + to_string(size_) + " pixels cannot be written as PNG");
}

}  // namespace h5pack
