/// Decodes image files to pixels.
///
/// Data flow: file -> examine_image -> libjpeg-turbo (JPEG) or OpenCV (the rest) -> [H,W,C] bytes
/// in the wanted colour and orientation. Pixels equal Pillow's; 16-bit samples are cut to their
/// high byte, alpha is dropped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <streambuf>
#include <string>

#include "cli/file_bytes.hpp"
#include "h5pack/image/image.hpp"
#include "h5pack/image/image_file.hpp"

namespace h5pack {

/// Decodes one file after the other and keeps its buffers. Not thread-safe: one for each thread.
class ImageDecoder {
 public:
  /// Whether the bytes of a file are kept as they are, for encoded().
  enum class Bytes : std::uint8_t { rewritten, kept };

  /// \param max_pixels  see ImageOptions.
  ImageDecoder(ColorMode color, OrientationMode orientation,
               std::int64_t max_pixels = kDefaultMaxPixels, Bytes bytes = Bytes::rewritten);
  ImageDecoder(ImageDecoder&&) noexcept;
  ImageDecoder& operator=(ImageDecoder&&) noexcept;
  ~ImageDecoder();

  /// Reads a file and tells the size of the image, turned upright if orientation is applied.
  /// Blocks on I/O.
  /// \param expected  see FileBytes::read().
  /// \throws Error not_found, io_failed, unsupported, corrupt_data, refused_by_policy (too many
  ///         pixels, before memory is taken for them).
  ImageSize open(const std::string& path, const std::optional<cli::FileStamp>& expected = {});

  /// The same for a file in memory, of which it takes a copy. \param name  for messages.
  ImageSize open_encoded(std::span<const std::byte> bytes, const std::string& name);

  /// The same for an image that is not encoded.
  /// \returns where the caller is to put its [3,H,W] bytes, before decode().
  [[nodiscard]] std::span<std::uint8_t> open_planes(ImageSize size);

  /// The opened file as it is, what it holds (absent: an image that is not encoded), its size
  /// before it is turned, and how it is: EXIF orientation, 1 if that is ignored.
  /// \pre Bytes::kept.
  [[nodiscard]] std::span<const std::uint8_t> encoded() const noexcept;
  [[nodiscard]] std::optional<ImageFormat> format() const noexcept;
  [[nodiscard]] ImageSize stored_size() const noexcept;
  [[nodiscard]] int orientation() const noexcept;

  /// What the opened file holds if its name says something else.
  [[nodiscard]] std::optional<ImageFormat> misnamed() const noexcept;

  /// Makes decode() give a smaller image if that costs less, but none smaller than `wanted` on
  /// either side: JPEG files shrink by 2, 4 or 8, others do not. Between open() and decode().
  /// \returns the size to come, upright as from open().
  ImageSize shrink(ImageSize wanted);

  /// Decodes the opened image. To be called once after each open().
  /// \param target  height * width * C writable bytes, [H,W,C] with C = 3 (RGB) or 1 (gray).
  /// \throws Error corrupt_data; `target` is unspecified then.
  void decode(std::uint8_t* target);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// While it lives, OpenCV does not write to stderr, where it repeats in several lines what is
/// thrown here as one. It uses std::cerr, so that is silent for everybody; stdio's stderr is not.
/// One at a time.
class OpenCvSilence {
 public:
  OpenCvSilence();
  OpenCvSilence(const OpenCvSilence&) = delete;
  OpenCvSilence& operator=(const OpenCvSilence&) = delete;
  ~OpenCvSilence();

 private:
  std::streambuf* cerr_;
  int log_level_;
};

}  // namespace h5pack
