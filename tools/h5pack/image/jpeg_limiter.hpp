/// Makes JPEG files of images that are larger than wanted: smaller ones of the same shape.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "h5pack/image/image.hpp"
#include "h5pack/image/jpeg_decoder.hpp"
#include "h5pack/image/jpeg_encoder.hpp"

namespace h5pack {

/// Of --max-side and --quality.
struct SizeLimit {
  std::int64_t max_side = 0;  ///< Of the longer side, in pixels; 0: images stay as they are.
  int quality = kDefaultJpegQuality;

  [[nodiscard]] bool exceeded_by(ImageSize size) const noexcept {
    return max_side > 0 && (size.height > max_side || size.width > max_side);
  }
  /// The size of an image that exceeds it: the longer side is max_side, the other is rounded to the
  /// nearest pixel, halves up.
  [[nodiscard]] ImageSize limited(ImageSize size) const noexcept;
};

/// Keeps its buffers; not thread-safe: one for each thread.
class JpegLimiter {
 public:
  /// A new file and what decodes from it, both valid until the next call.
  struct Result {
    std::span<const std::uint8_t> file;
    std::span<const std::uint8_t> pixels;  ///< RGB [H,W,3].
    ImageSize size;
  };

  /// \param limit  with a max_side.
  explicit JpegLimiter(const SizeLimit& limit) : limit_(limit), encoder_(limit.quality) {}

  /// Averages the pixels that fall together, which lets nothing alias, encodes and decodes them.
  /// \param pixels  RGB [H,W,3], of a size that exceeds the limit. \param name  for messages.
  /// \throws chunkio::Error as JpegEncoder and JpegDecoder.
  [[nodiscard]] Result limited(std::span<const std::uint8_t> pixels, ImageSize size,
                               const std::string& name);

 private:
  SizeLimit limit_;
  JpegEncoder encoder_;
  JpegDecoder decoder_;
  std::vector<std::uint8_t> resized_;
  std::vector<std::uint8_t> decoded_;
};

}  // namespace h5pack
