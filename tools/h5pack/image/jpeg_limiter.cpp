#include "h5pack/image/jpeg_limiter.hpp"

#include <algorithm>
#include <cstddef>

#include "h5pack/image/transform.hpp"

namespace h5pack {

ImageSize SizeLimit::limited(ImageSize size) const noexcept {
  const auto shorter = [&](std::int64_t side, std::int64_t longer) {
    return std::max<std::int64_t>((side * max_side + longer / 2) / longer, 1);
  };
  return size.height >= size.width ? ImageSize{max_side, shorter(size.width, size.height)}
                                   : ImageSize{shorter(size.height, size.width), max_side};
}

JpegLimiter::Result JpegLimiter::limited(std::span<const std::uint8_t> pixels, ImageSize size,
                                         const std::string& name) {
  constexpr std::int64_t kChannels = 3;
  const ImageSize wanted = limit_.limited(size);
  const auto bytes = static_cast<std::size_t>(wanted.pixels() * kChannels);
  resized_.resize(bytes);
  ImageOptions options;
  options.resize = Resize{.size = wanted};
  options.interpolation = Interpolation::area;
  ImageTransform(options).apply(pixels.data(), size, size, resized_.data());
  const std::span<const std::uint8_t> file =
      encoder_.encode(std::span(resized_).first(bytes), wanted, kChannels);
  decoded_.resize(bytes);
  static_cast<void>(decoder_.open(file, name));
  decoder_.decode(ColorMode::rgb, decoded_.data(), name);
  return {file, std::span(decoded_).first(bytes), wanted};
}

}  // namespace h5pack
