/// Encoded images. How they are decoded (1 byte), an EXIF orientation (1 byte), and the file.
#include <vector>

#include <chunkio/error.hpp>

#include "fuzz/fuzz_target.hpp"
#include "image/sample_decoder.hpp"

namespace chunkio::fuzz {

bool run(std::span<const std::byte> input) {
  InputReader reader(input);
  const auto how = reader.take<std::uint8_t>();
  DecodeOptions options{.height = 24, .width = 20};
  options.crop = (how & 1U) != 0 ? CropMode::random_resized : CropMode::center;
  options.gray = (how & 2U) != 0;
  options.exact = (how & 4U) != 0;
  image::SampleDecoder decoder{image::Decoding(options)};
  const image::Orientation orientation(
      static_cast<std::uint8_t>(1 + reader.take<std::uint8_t>() % image::Orientation::kMost));
  const std::vector<std::byte> file(reader.rest().begin(), reader.rest().end());
  std::vector<std::byte> sample(static_cast<std::size_t>(image::Decoding(options).sample_bytes()));
  try {
    decoder.open(file, orientation, image::SampleDraw{.key = {1, 2}, .sample_id = how});
    const auto stored = decoder.stored();
    // A file of 64 KiB may say that it has 4 gigapixels. Those are refused when they are packed.
    if (std::int64_t{stored.height} * stored.width > 4'000'000) return false;
    decoder.decode(sample);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace chunkio::fuzz
