#include "h5pack/image/image_file.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <libdeflate.h>

#include <chunkio/error.hpp>

#include "cli/quote.hpp"
#include "h5pack/image/orientation.hpp"

namespace h5pack {

namespace {

using chunkio::Error;
using chunkio::ErrorCode;
using Bytes = std::span<std::uint8_t>;

[[noreturn]] void throw_damaged(const std::string& path, const std::string& what) {
  throw Error(ErrorCode::corrupt_data,
              "cannot decode " + cli::quote(path) + ": " + what + " (repair or remove the file)");
}

[[noreturn]] void throw_unsupported(const std::string& path, const std::string& what) {
  throw Error(ErrorCode::unsupported, "cannot decode " + cli::quote(path) + ": " + what);
}

bool has(Bytes bytes, std::size_t position, std::string_view text) {
  return bytes.size() >= position + text.size() &&
         std::memcmp(bytes.data() + position, text.data(), text.size()) == 0;
}

std::uint32_t little_endian(Bytes bytes, std::size_t position, std::size_t width) {
  std::uint32_t value = 0;
  for (std::size_t i = width; i-- > 0;) value = (value << 8) | bytes[position + i];
  return value;
}

std::uint32_t big_endian(Bytes bytes, std::size_t position) {
  return std::uint32_t{bytes[position]} << 24 | std::uint32_t{bytes[position + 1]} << 16 |
         std::uint32_t{bytes[position + 2]} << 8 | bytes[position + 3];
}

ImageFile examine_png(Bytes bytes, const std::string& path) {
  constexpr std::size_t kSignatureBytes = 8;
  constexpr std::size_t kFrameBytes = 12;  // Length, type and CRC around a chunk's data.
  ImageFile file{ImageFormat::png, {}, 1, bytes};
  std::size_t position = kSignatureBytes;
  std::size_t kept = kSignatureBytes;
  for (;;) {
    if (bytes.size() - position < kFrameBytes) throw_damaged(path, "the PNG file ends early");
    const std::size_t length = big_endian(bytes, position);
    if (length > bytes.size() - position - kFrameBytes) {
      throw_damaged(path, "the PNG file ends early");
    }
    const Bytes type_and_data = bytes.subspan(position + 4, length + 4);
    const Bytes data = type_and_data.subspan(4);
    if (libdeflate_crc32(0, type_and_data.data(), type_and_data.size()) !=
        big_endian(bytes, position + 8 + length)) {
      throw_damaged(path, "wrong PNG checksum");
    }
    if (position == kSignatureBytes) {
      if (!has(type_and_data, 0, "IHDR") || length != 13) throw_damaged(path, "no PNG header");
      file.size = {big_endian(data, 4), big_endian(data, 0)};
      if (file.size.height == 0 || file.size.width == 0) throw_damaged(path, "empty PNG image");
    }
    if (has(type_and_data, 0, "acTL") && length >= 4 && big_endian(data, 0) > 1) {
      throw_unsupported(path, "animated PNG; store one frame as a still image");
    }
    if (has(type_and_data, 0, "eXIf")) file.orientation = exif_orientation(data);
    // Profiles, text and times change no pixel here, but make libpng print warnings.
    const bool critical = (type_and_data[0] & 0x20) == 0;
    const bool wanted = critical || has(type_and_data, 0, "tRNS");
    const bool last = has(type_and_data, 0, "IEND");
    if (wanted) {
      std::memmove(bytes.data() + kept, bytes.data() + position, length + kFrameBytes);
      kept += length + kFrameBytes;
    }
    position += length + kFrameBytes;
    if (last) break;
  }
  file.bytes = bytes.first(kept);
  return file;
}

ImageFile examine_bmp(Bytes bytes, const std::string& path) {
  ImageFile file{ImageFormat::bmp, {}, 1, bytes};
  if (bytes.size() < 30) throw_damaged(path, "the BMP file ends early");
  if (little_endian(bytes, 14, 4) == 12) {
    file.size = {little_endian(bytes, 20, 2), little_endian(bytes, 18, 2)};
  } else {
    const auto side = [&](std::size_t position) {
      return std::abs(std::int64_t{static_cast<std::int32_t>(little_endian(bytes, position, 4))});
    };
    file.size = {side(22), side(18)};
  }
  if (little_endian(bytes, 2, 4) > bytes.size()) throw_damaged(path, "the BMP file ends early");
  return file;
}

/// Samples as text, of which decoders take what they can and leave out the rest.
void check_text_samples(Bytes text, bool bitmap, std::int64_t max_value, const std::string& path) {
  bool comment = false;
  std::int64_t value = 0;
  for (const std::uint8_t byte : text) {
    const bool digit = byte >= '0' && byte <= '9';
    if (byte == '#') comment = true;
    if (byte == '\n') comment = false;
    if (comment) continue;
    if (!digit && (byte == 0 || std::strchr(" \t\r\n\v\f", byte) == nullptr)) {
      throw_damaged(path, "a sample of the PNM file is not a number");
    }
    // Bits need no spaces between them.
    value = digit ? (bitmap ? 0 : value * 10) + (byte - '0') : 0;
    if (value > max_value) throw_damaged(path, "a sample of the PNM file is out of range");
  }
}

ImageFile examine_pnm(Bytes bytes, const std::string& path) {
  ImageFile file{ImageFormat::pnm, {}, 1, bytes};
  std::size_t position = 2;
  const auto number = [&]() -> std::int64_t {
    while (position < bytes.size()) {
      if (bytes[position] == '#') {
        while (position < bytes.size() && bytes[position] != '\n') ++position;
      } else if (std::strchr(" \t\r\n\v\f", bytes[position]) != nullptr && bytes[position] != 0) {
        ++position;
      } else {
        break;
      }
    }
    std::int64_t value = -1;
    while (position < bytes.size() && bytes[position] >= '0' && bytes[position] <= '9') {
      value = (value < 0 ? 0 : value) * 10 + (bytes[position++] - '0');
      if (value > kHighestMaxPixels) throw_damaged(path, "the PNM header is out of range");
    }
    if (value < 1) throw_damaged(path, "the PNM header is damaged");
    return value;
  };
  file.size.width = number();
  file.size.height = number();
  const bool bitmap = bytes[1] == '1' || bytes[1] == '4';
  const std::int64_t max_value = bitmap ? 1 : number();
  // Other maxima need scaling, on which decoders disagree.
  if (!bitmap && max_value != 255 && max_value != 65535) {
    throw_unsupported(path, "PNM with maximum value " + std::to_string(max_value) +
                                "; convert it to 255 or 65535");
  }
  if (bytes[1] >= '4') {
    const std::int64_t row_bits =
        file.size.width * (bytes[1] == '6' ? 3 : 1) * (bitmap ? 1 : (max_value == 255 ? 8 : 16));
    const std::int64_t needed = file.size.height * ((row_bits + 7) / 8);
    if (static_cast<std::int64_t>(bytes.size() - position) - 1 < needed) {
      throw_damaged(path, "the PNM file ends early");
    }
  } else {
    check_text_samples(bytes.subspan(position), bitmap, max_value, path);
  }
  return file;
}

/// Whether the file holds all of its strips or tiles. Not every version of OpenCV tells: some leave
/// black what is missing.
bool has_all_pixels(const TiffDirectory& directory, std::size_t file_bytes) {
  const bool tiled = directory.find(kTiffTileOffsets).has_value();
  const auto offsets = directory.find_all(tiled ? kTiffTileOffsets : kTiffStripOffsets);
  const auto sizes = directory.find_all(tiled ? kTiffTileByteCounts : kTiffStripByteCounts);
  if (offsets.empty() || offsets.size() != sizes.size()) return false;
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    if (sizes[i] == 0 || offsets[i] > file_bytes || sizes[i] > file_bytes - offsets[i])
      return false;
  }
  return true;
}

ImageFile examine_tiff(Bytes bytes, const std::string& path) {
  ImageFile file{ImageFormat::tiff, {}, 1, bytes};
  const TiffDirectory directory(bytes);
  const auto width = directory.find(kTiffWidth);
  const auto height = directory.find(kTiffHeight);
  if (!width || !height) throw_damaged(path, "the TIFF directory is damaged");
  if (directory.has_next()) {
    throw_unsupported(path, "TIFF with several pages; store each page as a file");
  }
  if (!has_all_pixels(directory, bytes.size())) throw_damaged(path, "the TIFF file ends early");
  file.size = {height->value, width->value};
  if (const auto entry = directory.find(kTiffOrientation)) {
    if (entry->value >= 1 && entry->value <= 8) file.orientation = static_cast<int>(entry->value);
    std::memset(bytes.data() + entry->position, 0, entry->width);
    bytes[entry->position + (directory.big_endian() ? entry->width - 1 : 0)] = 1;
  }
  return file;
}

ImageFile examine_webp(Bytes bytes, const std::string& path) {
  ImageFile file{ImageFormat::webp, {}, 1, bytes};
  constexpr std::size_t kRiffHeader = 12;
  if (bytes.size() < kRiffHeader + 18) throw_damaged(path, "the WebP file ends early");
  if (little_endian(bytes, 4, 4) > bytes.size() - 8)
    throw_damaged(path, "the WebP file ends early");
  if (has(bytes, kRiffHeader, "VP8X")) {
    if ((bytes[20] & 0x02) != 0) {
      throw_unsupported(path, "animated WebP; store one frame as a still image");
    }
    file.size = {little_endian(bytes, 27, 3) + 1, little_endian(bytes, 24, 3) + 1};
  } else if (has(bytes, kRiffHeader, "VP8L")) {
    const std::uint32_t bits = little_endian(bytes, 21, 4);
    file.size = {((bits >> 14) & 0x3FFF) + 1, (bits & 0x3FFF) + 1};
  } else if (has(bytes, kRiffHeader, "VP8 ")) {
    file.size = {little_endian(bytes, 28, 2) & 0x3FFF, little_endian(bytes, 26, 2) & 0x3FFF};
  } else {
    throw_damaged(path, "the WebP header is damaged");
  }
  for (std::size_t position = kRiffHeader; bytes.size() - position >= 8;) {
    const std::size_t length = little_endian(bytes, position + 4, 4);
    if (length > bytes.size() - position - 8) break;
    if (has(bytes, position, "EXIF")) {
      file.orientation = exif_orientation(bytes.subspan(position + 8, length));
    }
    position += 8 + length;
    if (length % 2 != 0 && position < bytes.size()) ++position;
  }
  return file;
}

ImageFile examine(Bytes bytes, const std::string& path) {
  if (has(bytes, 0, "\xFF\xD8")) {
    return {ImageFormat::jpeg, {}, jpeg_orientation(bytes), bytes};
  }
  if (has(bytes, 0, "\x89PNG\r\n\x1A\n")) return examine_png(bytes, path);
  if (has(bytes, 0, "RIFF") && has(bytes, 8, "WEBP")) return examine_webp(bytes, path);
  if (has(bytes, 0, std::string_view("II*\0", 4)) || has(bytes, 0, std::string_view("MM\0*", 4))) {
    return examine_tiff(bytes, path);
  }
  if (has(bytes, 0, "BM")) return examine_bmp(bytes, path);
  if (bytes.size() >= 3 && bytes[0] == 'P' && bytes[1] >= '1' && bytes[1] <= '6' &&
      (bytes[2] == ' ' || bytes[2] == '\t' || bytes[2] == '\r' || bytes[2] == '\n')) {
    return examine_pnm(bytes, path);
  }
  const std::string kinds = "JPEG, PNG, BMP, PNM, TIFF and WebP are supported";
  if (has(bytes, 0, "GIF8")) throw_unsupported(path, "it is a GIF file; " + kinds);
  throw_unsupported(path, "it is not an image by its contents; " + kinds);
}

}  // namespace

std::string_view to_string(ImageFormat format) noexcept {
  switch (format) {
    case ImageFormat::jpeg:
      return "JPEG";
    case ImageFormat::png:
      return "PNG";
    case ImageFormat::bmp:
      return "BMP";
    case ImageFormat::pnm:
      return "PNM";
    case ImageFormat::tiff:
      return "TIFF";
    case ImageFormat::webp:
      return "WebP";
  }
  return "unknown";
}

std::optional<ImageFormat> format_by_name(std::string_view file_name) noexcept {
  using Known = std::pair<std::string_view, ImageFormat>;
  static constexpr std::array<Known, 9> kExtensions = {{{".jpg", ImageFormat::jpeg},
                                                        {".jpeg", ImageFormat::jpeg},
                                                        {".png", ImageFormat::png},
                                                        {".ppm", ImageFormat::pnm},
                                                        {".bmp", ImageFormat::bmp},
                                                        {".pgm", ImageFormat::pnm},
                                                        {".tif", ImageFormat::tiff},
                                                        {".tiff", ImageFormat::tiff},
                                                        {".webp", ImageFormat::webp}}};
  const auto lower = [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  const auto* const known =
      std::find_if(kExtensions.begin(), kExtensions.end(), [&](const Known& entry) {
        const std::string_view extension = entry.first;
        return file_name.size() >= extension.size() &&
               std::equal(extension.begin(), extension.end(),
                          file_name.end() - static_cast<std::ptrdiff_t>(extension.size()),
                          [&](char expected, char c) { return lower(c) == expected; });
      });
  if (known == kExtensions.end()) return std::nullopt;
  return known->second;
}

ImageFile examine_image(std::span<std::uint8_t> bytes, const std::string& path) {
  const ImageFile file = examine(bytes, path);
  if (file.format != ImageFormat::jpeg && (file.size.height < 1 || file.size.width < 1)) {
    throw_damaged(path, "it declares an empty image");
  }
  return file;
}

}  // namespace h5pack
