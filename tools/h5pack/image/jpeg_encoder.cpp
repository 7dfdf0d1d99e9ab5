#include "h5pack/image/jpeg_encoder.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <new>
#include <string>
#include <vector>

#include <chunkio/error.hpp>

#include "h5pack/image/jpeg_errors.hpp"

namespace h5pack {

using chunkio::Error;
using chunkio::ErrorCode;

namespace {

/// The file in memory. libjpeg's own loses memory when an error ends it.
struct Destination {
  jpeg_destination_mgr base{};  // First: libjpeg hands back a pointer to it.
  std::vector<std::uint8_t> bytes = std::vector<std::uint8_t>(std::size_t{64} << 10);

  jpeg_destination_mgr* set_up() noexcept {
    base.init_destination = [](j_compress_ptr info) { of(info).provide(0); };
    base.empty_output_buffer = grow;
    base.term_destination = [](j_compress_ptr /*info*/) {};
    return &base;
  }
  [[nodiscard]] std::size_t used() const noexcept { return bytes.size() - base.free_in_buffer; }

 private:
  static Destination& of(j_compress_ptr info) noexcept {
    return *reinterpret_cast<Destination*>(info->dest);
  }
  static boolean grow(j_compress_ptr info) {
    Destination& self = of(info);
    const std::size_t before = self.bytes.size();
    if (!self.resize(2 * before)) {
      auto* const errors = reinterpret_cast<JpegErrors*>(info->err);
      std::snprintf(errors->message.data(), errors->message.size(), "not enough memory");
      std::longjmp(errors->jump, 1);
    }
    self.provide(before);
    return TRUE;
  }
  bool resize(std::size_t size) noexcept try {
    bytes.resize(size);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
  void provide(std::size_t from) noexcept {
    base.next_output_byte = bytes.data() + from;
    base.free_in_buffer = bytes.size() - from;
  }
};

}  // namespace

struct JpegEncoder::Impl {
  explicit Impl(int wanted) : quality(wanted) {}
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() { jpeg_destroy_compress(&info); }

  int quality;
  jpeg_compress_struct info{};
  JpegErrors errors;
  Destination file;

  // The functions below call setjmp, so they hold nothing that would need a destructor.

  bool create() noexcept {
    info.err = errors.set_up();
    if (setjmp(errors.jump) != 0) return false;
    jpeg_create_compress(&info);
    info.dest = file.set_up();
    return true;
  }

  bool encode(const std::uint8_t* pixels, ImageSize image, int channels) noexcept {
    if (setjmp(errors.jump) != 0) {
      jpeg_abort_compress(&info);
      return false;
    }
    info.image_height = static_cast<JDIMENSION>(image.height);
    info.image_width = static_cast<JDIMENSION>(image.width);
    info.input_components = channels;
    info.in_color_space = channels == 3 ? JCS_RGB : JCS_GRAYSCALE;
    jpeg_set_defaults(&info);
    jpeg_set_quality(&info, quality, TRUE);
    info.dct_method = JDCT_ISLOW;
    jpeg_start_compress(&info, TRUE);
    const std::size_t stride = std::size_t{info.image_width} * static_cast<std::size_t>(channels);
    while (info.next_scanline < info.image_height) {
      JSAMPROW row = const_cast<JSAMPROW>(pixels + std::size_t{info.next_scanline} * stride);
      jpeg_write_scanlines(&info, &row, 1);
    }
    jpeg_finish_compress(&info);
    return true;
  }
};

JpegEncoder::JpegEncoder(int quality) : impl_(std::make_unique<Impl>(quality)) {
  if (!impl_->create()) {
    throw Error(ErrorCode::out_of_resources,
                std::string("cannot set up libjpeg: ") + impl_->errors.message.data());
  }
}

JpegEncoder::~JpegEncoder() = default;
JpegEncoder::JpegEncoder(JpegEncoder&&) noexcept = default;
JpegEncoder& JpegEncoder::operator=(JpegEncoder&&) noexcept = default;

std::span<const std::uint8_t> JpegEncoder::encode(std::span<const std::uint8_t> pixels,
                                                  ImageSize size, std::int64_t channels) {
  if (channels != 1 && channels != 3) {
    throw Error(ErrorCode::unsupported, "images with " + std::to_string(channels) +
                                            " channels cannot be JPEG files; only 1 and 3 can");
  }
  if (std::max(size.height, size.width) > kMaxJpegSide) {
    throw Error(ErrorCode::unsupported, "an image of " + to_string(size) +
                                            " pixels cannot be a JPEG file; sides are at most " +
                                            std::to_string(kMaxJpegSide));
  }
  if (!impl_->encode(pixels.data(), size, static_cast<int>(channels))) {
    throw Error(ErrorCode::out_of_resources,
                "an image of " + to_string(size) +
                    " pixels cannot be written as JPEG: " + impl_->errors.message.data());
  }
  return std::span(impl_->file.bytes).first(impl_->file.used());
}

}  // namespace h5pack
