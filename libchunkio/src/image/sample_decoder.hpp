/// Makes samples of encoded images: decodes what is needed of an image, upright, and resizes it to
/// the size that all samples have.
///
/// By default samples are those of the whole image decoded, cut and resized by Pillow, bit for bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <chunkio/dataset.hpp>

#include "base/philox.hpp"
#include "image/image_decoder.hpp"
#include "image/resize.hpp"
#include "image/resized_crop.hpp"

namespace chunkio::image {

/// DecodeOptions, checked.
struct Decoding {
  Size output;
  std::size_t num_channels = 3;
  CropMode crop = CropMode::center;
  std::int32_t shorter_side = 0;  ///< Of the image of which the centre is cut.
  RandomResizedCrop ranges;
  bool exact = true;

  /// \throws Error invalid_argument.
  explicit Decoding(const DecodeOptions& options);
  [[nodiscard]] std::int64_t sample_bytes() const noexcept {
    return std::int64_t{output.height} * output.width * static_cast<std::int64_t>(num_channels);
  }
};

/// How stored pixels are turned to stand upright: EXIF orientation, 1 to 8.
class Orientation {
 public:
  static constexpr std::uint8_t kMost = 8;

  Orientation() = default;
  /// \pre 1 <= value <= kMost.
  explicit constexpr Orientation(std::uint8_t value) noexcept : value_(value) {}

  [[nodiscard]] constexpr bool is_upright() const noexcept { return value_ == 1; }
  /// Rows become columns, before anything is reversed.
  [[nodiscard]] constexpr bool is_transposed() const noexcept { return value_ >= 5; }
  /// Stored rows, or stored columns, are in reverse order.
  [[nodiscard]] constexpr bool reverses_rows() const noexcept {
    return value_ == 3 || value_ == 4 || value_ == 6 || value_ == 7;
  }
  [[nodiscard]] constexpr bool reverses_columns() const noexcept {
    return value_ == 2 || value_ == 3 || value_ == 7 || value_ == 8;
  }
  [[nodiscard]] constexpr Size upright(Size stored) const noexcept {
    return is_transposed() ? Size{stored.width, stored.height} : stored;
  }
  /// Where a box of the upright image lies in the stored one.
  [[nodiscard]] constexpr Box stored(const Box& box, Size image) const noexcept {
    const Box turned = is_transposed() ? Box{box.left, box.top, box.width, box.height} : box;
    return {reverses_rows() ? image.height - turned.top - turned.height : turned.top,
            reverses_columns() ? image.width - turned.left - turned.width : turned.left,
            turned.height, turned.width};
  }

 private:
  std::uint8_t value_ = 1;
};

/// What random crops are drawn from.
struct SampleDraw {
  base::PhiloxKey key;  ///< augmentation_key() of the epoch.
  std::int64_t sample_id = 0;
};

/// Not thread-safe: one for each thread.
class SampleDecoder {
 public:
  explicit SampleDecoder(const Decoding& decoding)
      : decoding_(decoding), decoder_(decoding.num_channels) {}

  /// Reads the header of the next image. Keeps a view of `encoded` until decode().
  /// \param draw  absent: what would be random is the centre.
  /// \throws Error as ImageDecoder::open(); unsupported: the resized image has a side above
  ///         kMaxSide.
  void open(std::span<const std::byte> encoded, Orientation orientation,
            const std::optional<SampleDraw>& draw);
  /// Its size as it is stored.
  [[nodiscard]] Size stored() const noexcept { return stored_; }
  /// Bytes that decode() will take.
  [[nodiscard]] std::int64_t bytes() const noexcept;

  /// \param target  Decoding::sample_bytes(). \throws Error corrupt_data.
  void decode(std::span<std::byte> target);
  /// Gives the memory of pixels back, after a large image.
  void release() noexcept;

  /// More than decode() takes for any image of that many pixels.
  [[nodiscard]] static constexpr std::int64_t most_bytes(std::int64_t pixels) noexcept {
    return most_decoder_bytes(pixels) + 2 * kDecodedBytes * pixels;
  }

 private:
  static constexpr std::int64_t kDecodedBytes = 3;  // of a pixel

  [[nodiscard]] ResizedCrop crop_of(Size upright, const std::optional<SampleDraw>& draw) const;
  /// The pixels of crop_.box upright, in turned_.
  [[nodiscard]] Rows<const std::uint8_t> turned(const DecodedBox& decoded);

  Decoding decoding_;
  ImageDecoder decoder_;
  ResizePlan plan_;
  Size stored_;
  Orientation orientation_;
  ResizedCrop crop_;  // of the upright image
  std::vector<std::uint8_t> turned_;
  std::vector<std::uint8_t> scratch_;
};

}  // namespace chunkio::image
