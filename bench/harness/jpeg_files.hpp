/// JPEG files to pack, and the decoder of h5pack with nothing around it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "harness/drawn_images.hpp"

namespace h5pack {
class JpegDecoder;
}  // namespace h5pack

namespace bench {

/// A folder of class folders of JPEG files of one size.
struct JpegFolder {
  std::string path;
  ImageSize size;
  std::vector<std::string> files;  ///< In the order in which h5pack lists them.

  [[nodiscard]] std::int64_t count() const noexcept {
    return static_cast<std::int64_t>(files.size());
  }
};

/// Draws `count` images (draw_images) into ten class folders, at quality 90.
JpegFolder draw_jpeg_folder(const std::string& path, const ImageSize& size, std::int64_t count);
/// As many names for the files of `few`: hard links, on the same file system.
JpegFolder link_jpeg_folder(const std::string& path, const JpegFolder& few, std::int64_t count);
/// What there is in a folder of class folders. \throws std::runtime_error if there is nothing.
JpegFolder find_jpeg_folder(const std::string& path, const ImageSize& size);

/// The decoder of h5pack, set up once for many files. Not thread-safe: one for each thread.
class JpegReader {
 public:
  JpegReader();
  JpegReader(JpegReader&&) noexcept;
  ~JpegReader();

  /// \returns [H,W,3], valid until the next call. \throws chunkio::Error.
  std::span<const std::byte> decode(std::span<const std::byte> jpeg);
  /// Of the image decoded last.
  [[nodiscard]] std::int64_t height() const noexcept { return height_; }
  [[nodiscard]] std::int64_t width() const noexcept { return width_; }

 private:
  std::unique_ptr<h5pack::JpegDecoder> decoder_;
  std::vector<std::byte> pixels_;
  std::int64_t height_ = 0;
  std::int64_t width_ = 0;
};

/// Whole files, one after the other in the same memory. Not thread-safe.
class FileReader {
 public:
  /// \returns all of it, valid until the next call. \throws std::system_error.
  std::span<const std::byte> read(const std::string& path);

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace bench
