// WebP through libwebp. An image is decoded whole: cut out by libwebp, its edges would be other
// pixels.

#include <webp/decode.h>

#include <algorithm>

#include <chunkio/error.hpp>

#include "image/image_codec.hpp"

namespace chunkio::image {
namespace {

class WebpCodec final : public ImageCodec {
 public:
  Size open(std::span<const std::byte> encoded) override {
    encoded_ = {reinterpret_cast<const std::uint8_t*>(encoded.data()), encoded.size()};
    WebPBitstreamFeatures features;
    if (WebPGetFeatures(encoded_.data(), encoded_.size(), &features) != VP8_STATUS_OK) {
      throw Error(ErrorCode::corrupt_data, "its WebP header is damaged");
    }
    if (features.has_animation != 0) {
      throw Error(ErrorCode::unsupported, "it is an animated WebP image");
    }
    size_ = {features.height, features.width};
    return size_;
  }

  [[nodiscard]] std::int64_t bytes(const Box& /*box*/) const noexcept override {
    constexpr std::int64_t kBytesPerPixel = 8;  // the pixels, and those of a lossless decoder
    return kBytesPerPixel * (size_.height + 1) * size_.width;
  }

  DecodedRows decode(const Box& box, std::optional<Size> /*wanted*/,
                     std::vector<std::uint8_t>& rows) override {
    const std::size_t row_bytes = static_cast<std::size_t>(size_.width) * 3;
    make_room(rows, size_.height, size_.width, size_.width);
    if (WebPDecodeRGBInto(encoded_.data(), encoded_.size(), rows.data(), rows.size(),
                          static_cast<int>(row_bytes)) == nullptr) {
      throw Error(ErrorCode::corrupt_data, "its WebP data are damaged");
    }
    const auto first =
        rows.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(box.top) * row_bytes);
    std::copy(first,
              first + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(box.height) * row_bytes),
              rows.begin());
    return {.image = size_, .box = box, .left = 0, .width = size_.width};
  }

 private:
  std::span<const std::uint8_t> encoded_;
  Size size_;
};

}  // namespace

std::unique_ptr<ImageCodec> make_webp_codec() { return std::make_unique<WebpCodec>(); }

}  // namespace chunkio::image
