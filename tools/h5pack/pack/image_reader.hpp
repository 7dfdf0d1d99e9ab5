/// Reads a row of the source: decodes the image and transforms it to a sample.
#pragma once

#include <cstdint>
#include <exception>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include <chunkio/error.hpp>

#include "cli/escape.hpp"
#include "cli/quote.hpp"
#include "h5pack/image/decode.hpp"
#include "h5pack/image/image.hpp"
#include "h5pack/image/image_file.hpp"
#include "h5pack/image/transform.hpp"
#include "h5pack/sources/images.hpp"
#include "h5pack/sources/skipped_image.hpp"

namespace h5pack {

/// The size that all samples have, and which source row settled it.
struct SampleSize {
  ImageSize size;
  std::int64_t row = -1;  ///< -1: the options did.
};

/// What read() returns, or why the image cannot be packed. \param place  in pack order, for the
/// answer. \throws Error: what is no fault of the image, lack of memory among it.
template <class Read>
std::variant<std::invoke_result_t<Read>, SkippedImage> or_skipped(const Images& images,
                                                                  std::int64_t row,
                                                                  std::int64_t place, Read read) {
  try {
    return read();
  } catch (const chunkio::Error& error) {
    if (!is_of_one_image(error.code())) throw;
    return SkippedImage{place, row, error.code(), error.what()};
  } catch (const std::bad_alloc&) {
    throw chunkio::Error(chunkio::ErrorCode::out_of_resources,
                         "not enough memory to decode " + cli::quote(images.name(row)) +
                             "; use fewer --threads, or a lower --max-pixels");
  } catch (const std::exception& error) {
    return SkippedImage{
        place, row, chunkio::ErrorCode::corrupt_data,
        "cannot decode " + cli::quote(images.name(row)) + ": " + cli::escape(error.what())};
  }
}

/// Everything that one thread needs to decode rows of one split. Not thread-safe: one for each
/// thread. `images` must outlive it.
class ImageReader {
 public:
  ImageReader(const Images& images, const ImageOptions& options);

  /// The size source row `row` will have in the file. Blocks on I/O.
  /// \throws Error as ImageDecoder::open().
  [[nodiscard]] ImageSize output_size(std::int64_t row);

  /// Reads, decodes and transforms source row `row`, which must not be stored. Blocks on I/O.
  /// \param place   in pack order, for the answer.
  /// \param target  one sample of size `expected`; unspecified if the image is skipped.
  /// \returns its size in the source, or why it cannot be packed.
  /// \throws Error out_of_resources: what is no fault of the image.
  [[nodiscard]] std::variant<ImageSize, SkippedImage> read(std::int64_t row, std::int64_t place,
                                                           const SampleSize& expected,
                                                           std::span<std::uint8_t> target);

  /// What the file read last holds if its name says something else.
  [[nodiscard]] std::optional<ImageFormat> misnamed() const noexcept { return decoder_.misnamed(); }

 private:
  [[nodiscard]] std::string name(std::int64_t row) const { return images_->name(row); }
  ImageSize read_or_throw(std::int64_t row, const SampleSize& expected,
                          std::span<std::uint8_t> target);

  const Images* images_;
  ImageOptions options_;
  ImageDecoder decoder_;
  ImageTransform transform_;
  std::vector<std::uint8_t> decoded_;  // Pixels that still need a transform.
};

}  // namespace h5pack
