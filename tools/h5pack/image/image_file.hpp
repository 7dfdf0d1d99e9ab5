/// Recognises the format of an image file by its first bytes, never by its name.
///
/// Sizes are read here, before a decoder allocates anything for them: a file of a few hundred bytes
/// can declare an image of gigabytes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "h5pack/image/image.hpp"

namespace h5pack {

enum class ImageFormat : std::uint8_t { jpeg, png, bmp, pnm, tiff, webp };

/// "JPEG", for messages.
[[nodiscard]] std::string_view to_string(ImageFormat format) noexcept;

/// What a file holds by its extension, in any case of letters; absent if that is none of those of
/// torchvision's ImageFolder.
[[nodiscard]] std::optional<ImageFormat> format_by_name(std::string_view file_name) noexcept;

struct ImageFile {
  ImageFormat format = ImageFormat::jpeg;
  /// As declared, before orientation. Zero for JPEG, whose decoder tells.
  ImageSize size;
  int orientation = 1;            ///< EXIF or TIFF orientation, 1..8.
  std::span<std::uint8_t> bytes;  ///< What the decoder is to see; a part of the argument.
};

/// Recognises, checks and prepares a file for its decoder. Rewrites `bytes` in place: PNG chunks
/// that do not change pixels are removed (their checksums are verified like all others), and a TIFF
/// orientation is reset to 1, so that no decoder turns an image on its own.
/// \param path  for messages.
/// \throws Error unsupported (not an image, GIF, animated, several pages), corrupt_data (damaged
///         structure).
[[nodiscard]] ImageFile examine_image(std::span<std::uint8_t> bytes, const std::string& path);

}  // namespace h5pack
