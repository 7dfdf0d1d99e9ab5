/// The same images in every form that the ladder reads: JPEG files, the same bytes in one file,
/// contiguous HDF5, chunked HDF5, and memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "harness/jpeg_files.hpp"
#include "harness/scratch_folder.hpp"

namespace bench {

struct LadderImages {
  JpegFolder files;
  std::vector<std::byte> pixels;  ///< As the files decode, [N,H,W,3].
  std::string contiguous;         ///< HDF5 files with them as `images`.
  std::string chunked;
  std::string encoded;  ///< A file of the library's own with the bytes of the JPEG files.
  std::int64_t chunk_samples = 0;

  [[nodiscard]] std::int64_t count() const noexcept { return files.count(); }
  [[nodiscard]] std::size_t image_bytes() const noexcept {
    return static_cast<std::size_t>(files.size.bytes());
  }
  [[nodiscard]] const std::byte* image(std::int64_t row) const noexcept {
    return pixels.data() + static_cast<std::size_t>(row) * image_bytes();
  }
};

/// Decodes all files of `files` and writes the HDF5 files to `folder`.
/// \param chunk_bytes  a chunk has as many whole images as fit, at least one.
/// \throws std::runtime_error that names the file: no JPEG, or of another size than the first;
///         chunkio::Error (no space, ...).
[[nodiscard]] LadderImages prepare_images(JpegFolder files, std::int64_t chunk_bytes,
                                          const chunkio::test::ScratchFolder& folder);

/// The images of class folders, of the size of the first. \throws as prepare_images().
[[nodiscard]] JpegFolder find_images(const std::string& path);

}  // namespace bench
