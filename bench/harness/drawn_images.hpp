/// The images that are read: sizes, contents, files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include <chunkio/dataset.hpp>
#include <chunkio/dataset_writer.hpp>

namespace bench {

struct ImageSize {
  const char* name;
  std::int64_t height, width, channels;

  [[nodiscard]] std::int64_t bytes() const noexcept { return height * width * channels; }
};

inline constexpr ImageSize kImageSizes[] = {{"CelebA-sized", 218, 178, 3},
                                            {"CIFAR-sized", 32, 32, 3}};

/// Of a file that is not there, with one image, uint8 [H,W,C].
[[nodiscard]] chunkio::DatasetInfo info_of(const ImageSize& size);

/// Images that compress about as photographs do: two colours that run into each other, a disc and
/// a little grain. `bytes` holds whole images, the first of which has the given number.
void draw_images(const ImageSize& size, std::int64_t first, std::span<std::byte> bytes);

/// Makes whole images, the first of which has that number. Called by several threads.
using Fill = std::function<void(std::int64_t first, std::span<std::byte> bytes)>;
/// Writes all chunks, as fast as the CPUs fill them, and closes the writer.
void write_chunks(chunkio::DatasetWriter& writer, std::int64_t num_samples, const Fill& fill);

/// A file of the library's own, with all of `pixels`.
void write_images_file(const std::string& path, const ImageSize& size, std::int64_t num_samples,
                       std::span<const std::byte> pixels,
                       const chunkio::WriterOptions& options = {});
/// The same with noise that nobody needs to remember.
void write_noise_file(const std::string& path, const ImageSize& size, std::int64_t num_samples);
/// Chunks of about 4 MiB that were allocated and never written: a file full of holes, which reads
/// as zeros and takes no disk.
void write_hollow_file(const std::string& path, const ImageSize& size, std::int64_t num_samples);

std::string hdf5_version();

}  // namespace bench
