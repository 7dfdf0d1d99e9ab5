#include "h5pack/pack/image_reader.hpp"

#include <cstddef>

#include <chunkio/error.hpp>

#include "cli/quote.hpp"

namespace h5pack {

using chunkio::Error;
using chunkio::ErrorCode;

ImageReader::ImageReader(const Images& images, const ImageOptions& options)
    : images_(&images),
      options_(options),
      decoder_(options.color, options.orientation, options.max_pixels),
      transform_(options) {}

ImageSize ImageReader::output_size(std::int64_t row) {
  return transform_.output_size(images_->open(row, decoder_), name(row));
}

std::variant<ImageSize, SkippedImage> ImageReader::read(std::int64_t row, std::int64_t place,
                                                        const SampleSize& expected,
                                                        std::span<std::uint8_t> target) {
  return or_skipped(*images_, row, place, [&] { return read_or_throw(row, expected, target); });
}

ImageSize ImageReader::read_or_throw(std::int64_t row, const SampleSize& expected,
                                     std::span<std::uint8_t> target) {
  const ImageSize size = images_->open(row, decoder_);
  const ImageSize output = transform_.output_size(size, name(row));
  if (output != expected.size) {
    const std::string other =
        expected.row < 0 ? "the samples have" : cli::quote(name(expected.row)) + " gives";
    throw Error(ErrorCode::unsupported,
                other + " " + to_string(expected.size) + " pixels, but " + cli::quote(name(row)) +
                    " gives " + to_string(output) +
                    " (height x width): bring all to one size with --resize HxW, or --resize S "
                    "with --center-crop HxW or --pad HxW");
  }
  const bool may_shrink = options_.shrink_on_load && options_.resize;
  const ImageSize decoded = may_shrink ? decoder_.shrink(transform_.resized(size)) : size;
  if (decoded == size && transform_.is_identity(size)) {
    decoder_.decode(target.data());
  } else {
    decoded_.resize(static_cast<std::size_t>(decoded.pixels() * options_.channels()));
    decoder_.decode(decoded_.data());
    transform_.apply(decoded_.data(), decoded, size, target.data());
  }
  return size;
}

}  // namespace h5pack
