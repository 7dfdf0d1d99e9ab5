#include "image/sample_decoder.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include <chunkio/error.hpp>

#include "base/require.hpp"

namespace chunkio::image {
namespace {

/// Resize(256), then CenterCrop(224): what is cut is 7/8 of the shorter side.
constexpr std::int64_t default_shorter_side(std::int64_t height, std::int64_t width) noexcept {
  return (std::max(height, width) * 8 + 6) / 7;
}

std::int32_t checked_side(std::int64_t side, const std::string& name) {
  base::require(1 <= side && side <= kMaxSide,
                name + " must be 1 to 65535, got " + std::to_string(side));
  return static_cast<std::int32_t>(side);
}

}  // namespace

Decoding::Decoding(const DecodeOptions& options)
    : output{checked_side(options.height, "decode.height"),
             checked_side(options.width, "decode.width")},
      num_channels(options.gray ? 1 : 3),
      crop(options.crop),
      exact(options.exact) {
  switch (crop) {
    case CropMode::whole:
      break;
    case CropMode::center:
      shorter_side = checked_side(options.shorter_side != 0
                                      ? options.shorter_side
                                      : default_shorter_side(options.height, options.width),
                                  "decode.shorter_side");
      base::require(shorter_side >= std::max(output.height, output.width),
                    "decode.shorter_side is " + std::to_string(shorter_side) + ", and a crop of " +
                        std::to_string(output.height) + "x" + std::to_string(output.width) +
                        " does not fit into every image then");
      return;
    case CropMode::random_resized:
      ranges = random_resized_crop_ranges(options.ranges);
      shorter_side = checked_side(default_shorter_side(options.height, options.width),
                                  "7/8 of the larger of decode.height and decode.width");
      break;
  }
  base::require(options.shorter_side == 0,
                "decode.shorter_side goes with crop = center; leave it out");
}

ResizedCrop SampleDecoder::crop_of(Size upright, const std::optional<SampleDraw>& draw) const {
  const Size output = decoding_.output;
  if (decoding_.crop == CropMode::whole) {
    return resized({0, 0, upright.height, upright.width}, output);
  }
  if (decoding_.crop == CropMode::random_resized && draw) {
    return resized(random_box(decoding_.ranges, upright, draw->key, draw->sample_id, 0), output);
  }
  try {
    return resize_shorter_side_and_center_crop(upright, decoding_.shorter_side, output);
  } catch (const Error& error) {
    throw Error(ErrorCode::unsupported, error.what());
  }
}

void SampleDecoder::open(std::span<const std::byte> encoded, Orientation orientation,
                         const std::optional<SampleDraw>& draw) {
  stored_ = decoder_.open(encoded);
  orientation_ = orientation;
  crop_ = crop_of(orientation.upright(stored_), draw);
}

std::int64_t SampleDecoder::bytes() const noexcept {
  const Box box = orientation_.stored(crop_.box, stored_);
  const std::int64_t turned =
      orientation_.is_upright() ? 0 : kDecodedBytes * box.height * box.width;
  return decoder_.bytes(box) + turned;
}

void SampleDecoder::decode(std::span<std::byte> target) {
  const auto pixel_bytes = static_cast<std::ptrdiff_t>(decoding_.num_channels);
  Rows<const std::uint8_t> pixels;  // of crop_.box
  if (!decoding_.exact || !orientation_.is_upright()) {
    const bool transposed = orientation_.is_transposed();
    const Size wanted =
        transposed ? Size{crop_.resized.width, crop_.resized.height} : crop_.resized;
    const DecodedBox decoded =
        decoder_.decode(orientation_.stored(crop_.box, stored_),
                        decoding_.exact ? std::nullopt : std::optional(wanted));
    crop_.box = {0, 0, transposed ? decoded.box.width : decoded.box.height,
                 transposed ? decoded.box.height : decoded.box.width};
    pixels = orientation_.is_upright() ? decoded.pixels : turned(decoded);
    plan_.prepare(crop_, decoding_.num_channels);
  } else {
    plan_.prepare(crop_, decoding_.num_channels);
    const Box needed = plan_.needed();
    const DecodedBox decoded = decoder_.decode(
        {crop_.box.top + needed.top, crop_.box.left + needed.left, needed.height, needed.width},
        std::nullopt);
    // Where the first pixel of the box would be. What the plan reads is there.
    pixels = decoded.pixels;
    pixels.data -=
        static_cast<std::ptrdiff_t>(needed.top) * static_cast<std::ptrdiff_t>(pixels.stride) +
        needed.left * pixel_bytes;
  }
  if (scratch_.size() < plan_.scratch_bytes()) scratch_.resize(plan_.scratch_bytes());
  const auto row_bytes = static_cast<std::size_t>(decoding_.output.width) * decoding_.num_channels;
  plan_.resize(pixels, {reinterpret_cast<std::uint8_t*>(target.data()), row_bytes}, scratch_);
}

Rows<const std::uint8_t> SampleDecoder::turned(const DecodedBox& decoded) {
  const std::size_t channels = decoding_.num_channels;
  const auto height = static_cast<std::size_t>(crop_.box.height);
  const auto width = static_cast<std::size_t>(crop_.box.width);
  const auto last_row = static_cast<std::size_t>(decoded.box.height - 1);
  const auto last_column = static_cast<std::size_t>(decoded.box.width - 1);
  if (turned_.size() < height * width * channels) turned_.resize(height * width * channels);
  std::uint8_t* to = turned_.data();
  for (std::size_t y = 0; y < height; ++y) {
    for (std::size_t x = 0; x < width; ++x) {
      const std::size_t row = orientation_.is_transposed() ? x : y;
      const std::size_t column = orientation_.is_transposed() ? y : x;
      const std::uint8_t* const from =
          decoded.pixels.row(orientation_.reverses_rows() ? last_row - row : row) +
          (orientation_.reverses_columns() ? last_column - column : column) * channels;
      std::memcpy(to, from, channels);
      to += channels;
    }
  }
  return {turned_.data(), width * channels};
}

void SampleDecoder::release() noexcept {
  decoder_.release();
  turned_ = {};
}

}  // namespace chunkio::image
