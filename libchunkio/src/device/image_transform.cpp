#include "device/image_transform.hpp"

#include <algorithm>
#include <cstring>
#include <memory>

namespace chunkio::device {
namespace {

std::size_t pixels(std::int32_t height, std::int32_t width) noexcept {
  return static_cast<std::size_t>(height) * static_cast<std::size_t>(width);
}

/// Columns of a row of the output, from the left: of the padding, of the image, of the padding.
struct RowParts {
  std::size_t before = 0;
  std::size_t first_pixel = 0;  ///< Of the image.
  std::size_t inside = 0;
  std::size_t after = 0;
};

/// Before it is flipped.
RowParts parts_of_row(const CropPlan& sizes, const Crop& crop, std::int64_t row) noexcept {
  const std::int64_t image_row = crop.top + row;
  const std::int32_t begin = std::max(crop.left, 0);
  const std::int32_t end = std::min(crop.left + sizes.width, sizes.image_width);
  if (image_row < 0 || image_row >= sizes.image_height || end <= begin) {
    return {.before = static_cast<std::size_t>(sizes.width)};
  }
  return {.before = static_cast<std::size_t>(begin - crop.left),
          .first_pixel = static_cast<std::size_t>(image_row * sizes.image_width + begin),
          .inside = static_cast<std::size_t>(end - begin),
          .after = static_cast<std::size_t>(crop.left + sizes.width - end)};
}

/// Copies a row of pixels of `size` values each; padding is 0.
void copy_row(const std::uint8_t* image, const RowParts& parts, std::size_t size,
              std::uint8_t* to) noexcept {
  std::memset(to, 0, parts.before * size);
  to += parts.before * size;
  std::memcpy(to, image + parts.first_pixel * size, parts.inside * size);
  std::memset(to + parts.inside * size, 0, parts.after * size);
}

}  // namespace

ImageTransform::ImageTransform(const NormalizePlan& plan, RowConverter::Instructions instructions)
    : plan_(plan),
      converter_(plan.channels, plan.dtype, instructions),
      num_channels_(plan.channels.size()),
      image_pixels_(pixels(plan.crop.image_height, plan.crop.image_width)),
      output_pixels_(pixels(plan.crop.height, plan.crop.width)),
      element_bytes_(size_of(plan.dtype)) {}

void ImageTransform::write_rows(const std::uint8_t* image, const Crop& crop, std::int64_t first_row,
                                std::int64_t num_rows, std::byte* output, Stores stores) const {
  const auto width = static_cast<std::size_t>(plan_.crop.width);
  const auto num_pixels = static_cast<std::size_t>(num_rows) * width;
  const auto first_pixel = static_cast<std::size_t>(first_row) * width;
  if (is_staged(crop, first_row, num_rows)) {
    const auto staged = std::make_unique_for_overwrite<std::uint8_t[]>(num_pixels * num_channels_);
    stage(image, crop, first_row, num_rows, staged.get());
    convert({staged.get(), num_pixels}, num_pixels, crop.flipped, stores, first_pixel, output);
  } else {
    const auto first_value = static_cast<std::size_t>(crop.top + first_row) * width *
                             (plan_.input == Layout::nhwc ? num_channels_ : 1);
    convert({image + first_value, image_pixels_}, num_pixels, false, stores, first_pixel, output);
  }
}

bool ImageTransform::is_staged(const Crop& crop, std::int64_t first_row,
                               std::int64_t num_rows) const noexcept {
  const CropPlan& sizes = plan_.crop;
  const bool whole_rows = crop.left == 0 && sizes.width == sizes.image_width &&
                          crop.top + first_row >= 0 &&
                          crop.top + first_row + num_rows <= sizes.image_height;
  const bool planes_to_pixels =
      num_channels_ > 1 && plan_.input == Layout::nchw && plan_.output == Layout::nhwc;
  return crop.flipped || !whole_rows || planes_to_pixels;
}

// Crops and pads, in bytes, so that all rows can be converted in one go. Those that will be flipped
// are staged from the last to the first: in reverse order, all pixels are where they should be.
void ImageTransform::stage(const std::uint8_t* image, const Crop& crop, std::int64_t first_row,
                           std::int64_t num_rows, std::uint8_t* staged) const {
  const auto width = static_cast<std::size_t>(plan_.crop.width);
  const std::size_t plane_pixels = static_cast<std::size_t>(num_rows) * width;
  for (std::int64_t i = 0; i < num_rows; ++i) {
    const RowParts parts = parts_of_row(plan_.crop, crop, first_row + i);
    const auto place = static_cast<std::size_t>(crop.flipped ? num_rows - 1 - i : i) * width;
    if (plan_.input == Layout::nhwc) {
      copy_row(image, parts, num_channels_, staged + place * num_channels_);
      continue;
    }
    for (std::size_t c = 0; c < num_channels_; ++c) {
      const std::uint8_t* const plane = image + c * image_pixels_;
      if (plan_.output == Layout::nchw) {
        copy_row(plane, parts, 1, staged + c * plane_pixels + place);
        continue;
      }
      std::uint8_t* const to = staged + place * num_channels_ + c;
      for (std::size_t x = 0; x < width; ++x) {
        const bool inside = x >= parts.before && x - parts.before < parts.inside;
        to[x * num_channels_] = inside ? plane[parts.first_pixel + x - parts.before] : 0;
      }
    }
  }
}

void ImageTransform::convert(const Source& source, std::size_t num_pixels, bool reversed,
                             Stores stores, std::size_t first_pixel, std::byte* output) const {
  if (plan_.output == Layout::nhwc) {
    converter_.convert_pixels({source.values, num_pixels * num_channels_}, reversed, stores,
                              output + first_pixel * num_channels_ * element_bytes_);
    return;
  }
  for (std::size_t c = 0; c < num_channels_; ++c) {
    std::byte* const to = output + (c * output_pixels_ + first_pixel) * element_bytes_;
    if (plan_.input == Layout::nhwc) {
      converter_.convert_channel(c, {source.values, num_pixels * num_channels_}, reversed, stores,
                                 to);
    } else {
      converter_.convert_plane(c, {source.values + c * source.plane_stride, num_pixels}, reversed,
                               stores, to);
    }
  }
}

}  // namespace chunkio::device
