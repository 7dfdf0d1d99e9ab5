/// What ImageDecoder asks of a codec. Messages of errors are one clause, without a file's name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "image/resized_crop.hpp"

namespace chunkio::image {

/// Rows of RGB pixels that a codec gave: those of the box, and columns around it.
struct DecodedRows {
  Size image;              ///< What they belong to: as stored, or shrunk.
  Box box;                 ///< In it, as asked for; the first row is `box.top`.
  std::int32_t left = 0;   ///< The first column.
  std::int32_t width = 0;  ///< Columns.
};

/// Makes room for rows of RGB pixels, and for a row of the image behind them, which ResizePlan may
/// read.
inline void make_room(std::vector<std::uint8_t>& rows, std::int64_t height, std::int64_t width,
                      std::int64_t image_width) {
  constexpr std::int64_t kVector = 64;
  const auto bytes = static_cast<std::size_t>(3 * (height * width + image_width) + kVector);
  if (rows.size() < bytes) rows.resize(bytes);
}

/// Decodes one image after the other. Not thread-safe.
class ImageCodec {
 public:
  virtual ~ImageCodec() = default;

  /// Reads the header. Keeps a view of `encoded` until decode().
  /// \throws Error corrupt_data, unsupported.
  virtual Size open(std::span<const std::byte> encoded) = 0;
  /// Bytes that decode() will take for a box of the opened image, the rows included.
  [[nodiscard]] virtual std::int64_t bytes(const Box& box) const noexcept = 0;
  /// \param wanted  see ImageDecoder::decode(). \param rows  the pixels, uint8 [rows,width,3], and
  /// what
  ///              make_room() adds.
  /// \throws Error corrupt_data.
  virtual DecodedRows decode(const Box& box, std::optional<Size> wanted,
                             std::vector<std::uint8_t>& rows) = 0;
};

/// \throws Error out_of_resources.
[[nodiscard]] std::unique_ptr<ImageCodec> make_jpeg_codec();
[[nodiscard]] std::unique_ptr<ImageCodec> make_png_codec();
[[nodiscard]] std::unique_ptr<ImageCodec> make_webp_codec();

}  // namespace chunkio::image
