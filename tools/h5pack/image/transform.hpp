/// Resizes, crops, pads and reorders the axes of decoded images.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "h5pack/image/image.hpp"

namespace h5pack {

/// Brings decoded images to their final form. Keeps scratch memory; not thread-safe: one for each
/// thread.
///
/// Sizes follow torchvision: the longer side is cut to a whole number, a centre crop starts at half
/// the difference rounded to even. Nothing is done implicitly: an image smaller than the crop or
/// larger than the padding is an error.
class ImageTransform {
 public:
  /// \throws Error invalid_argument if center_crop and pad are both given, or either cannot fit
  ///         `resize`.
  explicit ImageTransform(const ImageOptions& options);

  /// The size of every output, if the options alone settle it.
  [[nodiscard]] std::optional<ImageSize> fixed_size() const noexcept;
  /// The size that an image of size `in` gets.
  /// \param name  of the image, for messages.
  /// \throws Error unsupported (too small to crop, too large to pad).
  [[nodiscard]] ImageSize output_size(ImageSize in, const std::string& name) const;
  /// True if apply() would copy [H,W,C] as it is.
  [[nodiscard]] bool is_identity(ImageSize in) const noexcept;

  /// The size after resizing, before crop and padding.
  [[nodiscard]] ImageSize resized(ImageSize in) const noexcept;

  /// \param in        [H,W,C] pixels of size `decoded`.
  /// \param original  the size that the image had before it was shrunk to `decoded`, which
  /// decides
  ///                  what it is resized to; `decoded` itself if it was not.
  /// \param target    output_size(original) * C bytes, in the layout of the options; does not
  ///                  overlap `in`.
  /// \pre output_size(original) does not throw.
  void apply(const std::uint8_t* in, ImageSize decoded, ImageSize original, std::uint8_t* target);

 private:
  ImageOptions options_;
  std::vector<std::uint8_t> resized_;
  std::vector<std::uint8_t> framed_;
};

}  // namespace h5pack
