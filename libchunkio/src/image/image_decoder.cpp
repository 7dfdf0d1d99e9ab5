#include "image/image_decoder.hpp"

#include <algorithm>
#include <string_view>

#include <chunkio/error.hpp>

namespace chunkio::image {
namespace {

constexpr std::size_t kDecodedChannels = 3;

/// The luma of Pillow's convert("L"): ITU-R 601-2 in 16 bits.
constexpr std::uint8_t luma(const std::uint8_t* rgb) noexcept {
  return static_cast<std::uint8_t>((rgb[0] * 19595U + rgb[1] * 38470U + rgb[2] * 7471U + 0x8000U) >>
                                   16);
}

constexpr const char* kNoCodecs =
    "this libchunkio was built without image codecs; build it with libjpeg-turbo, libpng and "
    "libwebp";

std::unique_ptr<ImageCodec> make_codec(Codec codec) {
#ifdef CHUNKIO_HAS_CODECS
  switch (codec) {
    case Codec::jpeg:
      return make_jpeg_codec();
    case Codec::png:
      return make_png_codec();
    case Codec::webp:
      return make_webp_codec();
  }
#endif
  static_cast<void>(codec);
  throw Error(ErrorCode::unsupported, kNoCodecs);
}

}  // namespace

bool has_codecs() noexcept {
#ifdef CHUNKIO_HAS_CODECS
  return true;
#else
  return false;
#endif
}

std::optional<Codec> codec_of(std::span<const std::byte> encoded) noexcept {
  const std::string_view bytes(reinterpret_cast<const char*>(encoded.data()), encoded.size());
  if (bytes.starts_with("\xFF\xD8\xFF")) return Codec::jpeg;
  if (bytes.starts_with("\x89PNG\r\n\x1A\n")) return Codec::png;
  if (bytes.starts_with("RIFF") && bytes.size() >= 12 && bytes.substr(8, 4) == "WEBP") {
    return Codec::webp;
  }
  return std::nullopt;
}

Size ImageDecoder::open(std::span<const std::byte> encoded) {
  const std::optional<Codec> codec = codec_of(encoded);
  if (!codec) throw Error(ErrorCode::corrupt_data, "it is no JPEG, PNG or WebP image");
  auto& one = codecs_[static_cast<std::size_t>(*codec)];
  if (!one) one = make_codec(*codec);
  codec_ = one.get();
  const Size size = codec_->open(encoded);
  if (size.height < 1 || size.width < 1 || size.height > kMaxSide || size.width > kMaxSide) {
    throw Error(ErrorCode::unsupported, "it has " + std::to_string(size.height) + "x" +
                                            std::to_string(size.width) +
                                            " pixels; sides must be 1 to 65535");
  }
  return size;
}

DecodedBox ImageDecoder::decode(const Box& box, std::optional<Size> wanted) {
  const DecodedRows rows = codec_->decode(box, wanted, rows_);
  const auto width = static_cast<std::size_t>(rows.width);
  if (num_channels_ == 1) {
    const std::size_t pixels = static_cast<std::size_t>(rows.box.height) * width;
    for (std::size_t i = 0; i < pixels; ++i) rows_[i] = luma(rows_.data() + kDecodedChannels * i);
  }
  const auto skipped = static_cast<std::size_t>(rows.box.left - rows.left);
  return {{rows_.data() + skipped * num_channels_, width * num_channels_}, rows.image, rows.box};
}

}  // namespace chunkio::image
