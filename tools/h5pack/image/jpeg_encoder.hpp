/// Encodes pixels as JPEG files.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "h5pack/image/image.hpp"

namespace h5pack {

/// Of --quality, as libjpeg counts it: 1 (small) to 100.
inline constexpr int kDefaultJpegQuality = 90;
/// Longer sides are no JPEG.
inline constexpr std::int64_t kMaxJpegSide = 65500;

/// Encodes one image after the other, colour at half the resolution (4:2:0) as Pillow and OpenCV do
/// unless told otherwise. Keeps its buffers; not thread-safe: one for each thread.
class JpegEncoder {
 public:
  /// \param quality  1 to 100.
  explicit JpegEncoder(int quality);
  ~JpegEncoder();
  JpegEncoder(JpegEncoder&&) noexcept;
  JpegEncoder& operator=(JpegEncoder&&) noexcept;

  /// \param pixels  [H,W,C], C = 3 (RGB) or 1 (gray).
  /// \returns the file, valid until the next call.
  /// \throws chunkio::Error unsupported (a side above kMaxJpegSide, other channels),
  ///         out_of_resources.
  [[nodiscard]] std::span<const std::uint8_t> encode(std::span<const std::uint8_t> pixels,
                                                     ImageSize size, std::int64_t channels);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace h5pack
