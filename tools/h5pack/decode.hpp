/// Image files to pixels.
///
/// Data flow: file -> examine_picture -> libjpeg-turbo (JPEG) or OpenCV (the rest) -> [H,W,C] bytes
/// in the wanted colour and orientation. Pixels equal Pillow's; 16-bit samples are cut to their
/// high byte, alpha is dropped.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <streambuf>
#include <string>

#include "file_bytes.hpp"
#include "picture.hpp"
#include "picture_file.hpp"

namespace h5pack {

/// Decodes one file after the other and keeps its buffers. Not thread-safe: one for each thread.
class PictureDecoder {
 public:
  /// \param max_pixels  see PictureOptions.
  PictureDecoder(ColorMode color, OrientationMode orientation,
                 std::int64_t max_pixels = kDefaultMaxPixels);
  PictureDecoder(PictureDecoder&&) noexcept;
  PictureDecoder& operator=(PictureDecoder&&) noexcept;
  ~PictureDecoder();

  /// Reads a file and tells the size of the image, turned upright if orientation is applied.
  /// Blocks on I/O.
  /// \param expected  see FileBytes::read().
  /// \throws Error not_found, io_failed, unsupported, corrupt_data, refused_by_policy (too many
  ///         pixels, before memory is taken for them).
  PictureSize open(const std::string& path, const std::optional<FileStamp>& expected = {});

  /// What the opened file holds.
  [[nodiscard]] PictureFormat format() const noexcept;

  /// Makes decode() give a smaller image if that costs less, but none smaller than `wanted` on
  /// either side: JPEG files shrink by 2, 4 or 8, others do not. Between open() and decode().
  /// \returns the size to come, upright as from open().
  PictureSize shrink(PictureSize wanted);

  /// Decodes the opened file. To be called once after each open().
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
