/// JPEG through libjpeg-turbo's own interface, so that damage is an error instead of gray pixels.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "h5pack/image/image.hpp"

namespace h5pack {

/// Decodes one JPEG file after the other; pixels equal Pillow's. Not thread-safe: one for each
/// thread.
class JpegDecoder {
 public:
  JpegDecoder();
  ~JpegDecoder();
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  /// Reads the header. Keeps a view of `jpeg` until the next open().
  /// \param path  for messages.
  /// \throws Error corrupt_data, unsupported (neither 1, 3 nor 4 components).
  ImageSize open(std::span<const std::uint8_t> jpeg, const std::string& path);

  /// Makes decode() give the opened file shrunk by 8, 4 or 2, by the most that leaves `wanted`
  /// pixels on both sides; else whole. Between open() and decode().
  /// \returns the size to come.
  ImageSize shrink(ImageSize wanted);

  /// Decodes the opened file to [H,W,C], C = 3 or 1 by `color`. To be called once after each
  /// open().
  /// \param target  height * width * C writable bytes.
  /// \throws Error corrupt_data: whatever libjpeg only warns of (early end, bad codes, extraneous
  ///         bytes) is an error here; `target` is unspecified then.
  void decode(ColorMode color, std::uint8_t* target, const std::string& path);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace h5pack
