#include "h5pack/image/orientation.hpp"

#include <cstring>
#include <string_view>

namespace h5pack {

namespace {

constexpr std::size_t kEntryBytes = 12;
constexpr std::uint16_t kTypeShort = 3;
constexpr std::uint16_t kTypeLong = 4;

bool starts_with(std::span<const std::uint8_t> bytes, std::string_view prefix) noexcept {
  return bytes.size() >= prefix.size() &&
         std::memcmp(bytes.data(), prefix.data(), prefix.size()) == 0;
}

constexpr std::string_view kExifPrefix("Exif\0\0", 6);

}  // namespace

TiffDirectory::TiffDirectory(std::span<const std::uint8_t> tiff) noexcept : tiff_(tiff) {
  if (starts_with(tiff, std::string_view("MM\0*", 4))) {
    big_endian_ = true;
  } else if (!starts_with(tiff, std::string_view("II*\0", 4))) {
    return;
  }
  if (tiff.size() < 8) return;
  const std::size_t start = number(4, 4);
  if (start < 8 || start > tiff.size() - 2) return;
  count_ = number(start, 2);
  if (count_ > (tiff.size() - start - 2) / kEntryBytes) return;
  entries_ = start + 2;
}

std::uint32_t TiffDirectory::number(std::size_t position, std::size_t width) const noexcept {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < width; ++i) {
    const std::size_t byte = big_endian_ ? i : width - 1 - i;
    value = (value << 8) | tiff_[position + byte];
  }
  return value;
}

std::optional<std::size_t> TiffDirectory::entry_of(std::uint16_t tag) const noexcept {
  for (std::size_t i = 0; i < count_ && valid(); ++i) {
    const std::size_t entry = entries_ + i * kEntryBytes;
    if (number(entry, 2) == tag) return entry;
  }
  return std::nullopt;
}

/// Bytes of each of its values; 0 if they are neither SHORT nor LONG.
std::size_t TiffDirectory::width_of(std::size_t entry) const noexcept {
  const std::uint32_t type = number(entry + 2, 2);
  if (type == kTypeShort) return 2;
  return type == kTypeLong ? 4 : 0;
}

std::optional<TiffNumber> TiffDirectory::find(std::uint16_t tag) const noexcept {
  const auto entry = entry_of(tag);
  if (!entry) return std::nullopt;
  const std::size_t width = width_of(*entry);
  if (width == 0) return std::nullopt;
  return TiffNumber{number(*entry + 8, width), *entry + 8, width};
}

std::vector<std::uint32_t> TiffDirectory::find_all(std::uint16_t tag) const {
  const auto entry = entry_of(tag);
  if (!entry) return {};
  const std::size_t width = width_of(*entry);
  const std::size_t count = number(*entry + 4, 4);
  if (width == 0 || count > tiff_.size() / width) return {};
  // Up to four bytes of values are in the entry itself; more are where it says.
  const std::size_t begin = count * width <= 4 ? *entry + 8 : number(*entry + 8, 4);
  if (begin > tiff_.size() || count * width > tiff_.size() - begin) return {};
  std::vector<std::uint32_t> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = number(begin + i * width, width);
  return values;
}

bool TiffDirectory::has_next() const noexcept {
  const std::size_t end = entries_ + count_ * kEntryBytes;
  return valid() && tiff_.size() - end >= 4 && number(end, 4) != 0;
}

int exif_orientation(std::span<const std::uint8_t> exif) noexcept {
  if (starts_with(exif, kExifPrefix)) exif = exif.subspan(kExifPrefix.size());
  const auto entry = TiffDirectory(exif).find(kTiffOrientation);
  return entry && entry->value >= 1 && entry->value <= 8 ? static_cast<int>(entry->value) : 1;
}

int jpeg_orientation(std::span<const std::uint8_t> jpeg) noexcept {
  std::size_t position = 2;
  while (position + 4 <= jpeg.size() && jpeg[position] == 0xFF) {
    const std::uint8_t marker = jpeg[position + 1];
    if (marker == 0xFF) {  // Fill byte.
      ++position;
      continue;
    }
    if (marker == 0xDA) break;  // Start of scan: metadata is over.
    const std::size_t length = std::size_t{jpeg[position + 2]} << 8 | jpeg[position + 3];
    if (length < 2 || length > jpeg.size() - position - 2) break;
    const auto body = jpeg.subspan(position + 4, length - 2);
    if (marker == 0xE1 && starts_with(body, kExifPrefix)) return exif_orientation(body);
    position += 2 + length;
  }
  return 1;
}

ImageSize oriented_size(ImageSize stored, int orientation) noexcept {
  return orientation >= 5 ? ImageSize{stored.width, stored.height} : stored;
}

void orient_pixels(const std::uint8_t* source, ImageSize stored, std::int64_t channels,
                   int orientation, std::uint8_t* target) noexcept {
  // Every orientation is a start pixel and a step along each target axis: (row, column) of the
  // target comes from start + row * row_step + column * column_step.
  const std::int64_t right = channels;
  const std::int64_t down = stored.width * channels;
  const std::int64_t last_column = (stored.width - 1) * right;
  const std::int64_t last_row = (stored.height - 1) * down;
  std::int64_t start = 0;
  std::int64_t row_step = down;
  std::int64_t column_step = right;
  switch (orientation) {
    case 2:
      start = last_column, column_step = -right;
      break;
    case 3:
      start = last_row + last_column, row_step = -down, column_step = -right;
      break;
    case 4:
      start = last_row, row_step = -down;
      break;
    case 5:
      row_step = right, column_step = down;
      break;
    case 6:
      start = last_row, row_step = right, column_step = -down;
      break;
    case 7:
      start = last_row + last_column, row_step = -right, column_step = -down;
      break;
    case 8:
      start = last_column, row_step = -right, column_step = down;
      break;
    default:
      break;
  }
  const ImageSize upright = oriented_size(stored, orientation);
  for (std::int64_t y = 0; y < upright.height; ++y) {
    const std::uint8_t* pixel = source + start + y * row_step;
    for (std::int64_t x = 0; x < upright.width; ++x) {
      for (std::int64_t c = 0; c < channels; ++c) *target++ = pixel[c];
      if (x + 1 < upright.width) pixel += column_step;
    }
  }
}

}  // namespace h5pack
