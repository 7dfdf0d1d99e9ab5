/// Encodes stored images as PNG files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <chunkio/tensor.hpp>

#include "h5pack/image/image.hpp"

namespace h5pack {

/// Encodes images of one kind. Keeps its buffers; not thread-safe: one for each thread.
class PngEncoder {
 public:
  /// \throws chunkio::Error unsupported: images of other than 1 (gray), 3 (RGB) or 4 (RGBA)
  ///         channels are no PNG.
  PngEncoder(ImageSize size, std::int64_t channels, chunkio::Layout layout);

  /// Without loss.
  /// \param pixels  [H,W,C] or [C,H,W], by the layout.
  /// \returns the file, valid until the next call.
  /// \throws chunkio::Error unsupported (the encoder fails).
  [[nodiscard]] std::span<const unsigned char> encode(std::span<const std::byte> pixels);

 private:
  ImageSize size_;
  std::int64_t channels_;
  chunkio::Layout layout_;
  std::vector<unsigned char> interleaved_;  // [H,W,C] in the order the encoder wants
  std::vector<unsigned char> file_;
};

}  // namespace h5pack
