/// Reads the EXIF orientation, and turns pixels upright by it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "h5pack/image/image.hpp"

namespace h5pack {

/// One number in the first directory of a TIFF structure (a TIFF file, or the body of an EXIF
/// block).
struct TiffNumber {
  std::uint32_t value = 0;
  std::size_t position = 0;  ///< Byte offset of the value.
  std::size_t width = 0;     ///< 2 or 4 bytes.
};

/// The first directory of a TIFF structure. Every offset is checked; damage reads as absence.
class TiffDirectory {
 public:
  explicit TiffDirectory(std::span<const std::uint8_t> tiff) noexcept;

  [[nodiscard]] bool valid() const noexcept { return entries_ != 0; }
  /// The first value of a SHORT or LONG entry.
  [[nodiscard]] std::optional<TiffNumber> find(std::uint16_t tag) const noexcept;
  /// All values of a SHORT or LONG entry; empty if it is damaged.
  [[nodiscard]] std::vector<std::uint32_t> find_all(std::uint16_t tag) const;
  /// True if another directory (a further page) follows.
  [[nodiscard]] bool has_next() const noexcept;
  [[nodiscard]] bool big_endian() const noexcept { return big_endian_; }

 private:
  [[nodiscard]] std::optional<std::size_t> entry_of(std::uint16_t tag) const noexcept;
  [[nodiscard]] std::size_t width_of(std::size_t entry) const noexcept;
  [[nodiscard]] std::uint32_t number(std::size_t position, std::size_t width) const noexcept;

  std::span<const std::uint8_t> tiff_;
  bool big_endian_ = false;
  std::size_t entries_ = 0;  ///< Offset of the first entry; 0: none.
  std::size_t count_ = 0;
};

inline constexpr std::uint16_t kTiffWidth = 256;
inline constexpr std::uint16_t kTiffHeight = 257;
inline constexpr std::uint16_t kTiffStripOffsets = 273;
inline constexpr std::uint16_t kTiffOrientation = 274;
inline constexpr std::uint16_t kTiffStripByteCounts = 279;
inline constexpr std::uint16_t kTiffTileOffsets = 324;
inline constexpr std::uint16_t kTiffTileByteCounts = 325;

/// Orientation 1..8 of an EXIF block, with or without its "Exif\0\0" prefix; 1 if it says nothing.
[[nodiscard]] int exif_orientation(std::span<const std::uint8_t> exif) noexcept;
/// Orientation 1..8 from the APP1 segments of a JPEG file; 1 if it says nothing.
[[nodiscard]] int jpeg_orientation(std::span<const std::uint8_t> jpeg) noexcept;

/// The size after turning upright: orientations 5 to 8 swap height and width.
[[nodiscard]] ImageSize oriented_size(ImageSize stored, int orientation) noexcept;

/// Turns [H,W,C] pixels upright.
/// \pre source holds stored.height * stored.width * channels bytes, target as many; no overlap.
void orient_pixels(const std::uint8_t* source, ImageSize stored, std::int64_t channels,
                   int orientation, std::uint8_t* target) noexcept;

}  // namespace h5pack
