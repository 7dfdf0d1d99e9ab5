/// Decodes the part of a JPEG, PNG or WebP image that is wanted, as uint8 [H,W,C].
///
/// Pixels are those of Pillow's `Image.open(...).convert("RGB")` or `convert("L")`. Of a JPEG image
/// only the rows and columns that the box needs are transformed, with a margin, so that they are
/// those of the whole image; what lies below the box is not even read. Whatever libjpeg only warns
/// of (an early end, bad codes) is an error.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "image/image_codec.hpp"
#include "image/resize.hpp"
#include "image/resized_crop.hpp"

namespace chunkio::image {

enum class Codec : std::uint8_t { jpeg, png, webp };

/// Whether the library was built with the codecs.
[[nodiscard]] bool has_codecs() noexcept;

/// By its first bytes; absent if it is none of them.
[[nodiscard]] std::optional<Codec> codec_of(std::span<const std::byte> encoded) noexcept;

/// A part of an image that ImageDecoder has; valid until its next call.
struct DecodedBox {
  Rows<const std::uint8_t> pixels;  ///< The first one is that of the box.
  Size image;                       ///< What they belong to: as stored, or shrunk.
  Box box;                          ///< In it.
};

/// Decodes one image after the other. Not thread-safe: one for each thread.
class ImageDecoder {
 public:
  /// \param num_channels  1 (gray) or 3 (RGB).
  explicit ImageDecoder(std::size_t num_channels) : num_channels_(num_channels) {}

  /// Reads the header. Keeps a view of `encoded` until decode().
  /// \returns the size, each side 1 to kMaxSide.
  /// \throws Error corrupt_data, unsupported (of none of the formats, or the library was built
  /// without their codecs), out_of_resources. Messages are one clause, without a file's name.
  Size open(std::span<const std::byte> encoded);
  /// Bytes that decode() will take for a box of the opened image.
  [[nodiscard]] std::int64_t bytes(const Box& box) const noexcept { return codec_->bytes(box); }

  /// Decodes the box of the opened image. To be called once after each open().
  /// \param wanted  pixels that the box will be resized to: then it may be decoded shrunk by 2, 4
  ///                or 8, to no fewer pixels than that, if the codec can. Absent: as stored.
  /// \throws Error corrupt_data.
  DecodedBox decode(const Box& box, std::optional<Size> wanted);
  /// Gives the memory of pixels back, after a large image.
  void release() noexcept { rows_ = {}; }

 private:
  std::size_t num_channels_;
  std::array<std::unique_ptr<ImageCodec>, 3> codecs_;  // by Codec, made when first needed
  ImageCodec* codec_ = nullptr;                        // of the opened image
  std::vector<std::uint8_t> rows_;
};

/// More than ImageDecoder takes for any image of that many pixels.
[[nodiscard]] constexpr std::int64_t most_decoder_bytes(std::int64_t pixels) noexcept {
  constexpr std::int64_t kBytesPerPixel = 12;  // coefficients of four inks, and the pixels
  constexpr std::int64_t kOthers = std::int64_t{1} << 20;
  return kBytesPerPixel * pixels + kOthers;
}

}  // namespace chunkio::image
