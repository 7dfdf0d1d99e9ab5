#include "h5pack/image/jpeg_decoder.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <vector>

#include <chunkio/error.hpp>

#include "cli/quote.hpp"
#include "h5pack/image/jpeg_errors.hpp"

namespace h5pack {

namespace {

using chunkio::Error;
using chunkio::ErrorCode;

// A progressive file of a few kilobytes can hold thousands of scans, each a pass over the whole
// image.
constexpr int kMaxScans = 500;

void on_progress(j_common_ptr info) {
  if (!info->is_decompressor) return;
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= kMaxScans) return;
  auto* errors = reinterpret_cast<JpegErrors*>(info->err);
  std::snprintf(errors->message.data(), errors->message.size(), "more than %d scans", kMaxScans);
  std::longjmp(errors->jump, 1);
}

/// Rounded a * b / 255.
constexpr std::uint32_t multiply_255(std::uint32_t a, std::uint32_t b) noexcept {
  const std::uint32_t product = a * b + 128;
  return ((product >> 8) + product) >> 8;
}

/// Adobe files hold inverted inks, and Pillow takes every CMYK JPEG as such: with c = 255 - stored,
/// red = nk - c * nk / 255 where nk = 255 - black = the stored black.
constexpr std::uint8_t ink_to_light(std::uint8_t stored_ink, std::uint8_t stored_black) noexcept {
  return static_cast<std::uint8_t>(stored_black - multiply_255(255U - stored_ink, stored_black));
}

void convert_row(const std::uint8_t* row, std::int64_t width, bool cmyk, ColorMode color,
                 std::uint8_t* target) noexcept {
  for (std::int64_t x = 0; x < width; ++x) {
    std::uint8_t red = row[0];
    std::uint8_t green = row[1];
    std::uint8_t blue = row[2];
    if (cmyk) {
      red = ink_to_light(red, row[3]);
      green = ink_to_light(green, row[3]);
      blue = ink_to_light(blue, row[3]);
    }
    row += cmyk ? 4 : 3;
    put_pixel(red, green, blue, color, target);
  }
}

}  // namespace

struct JpegDecoder::Impl {
  jpeg_decompress_struct info{};
  JpegErrors errors;
  jpeg_progress_mgr progress{};
  std::vector<std::uint8_t> row;  // One scanline that needs conversion.

  // The functions below call setjmp, so they hold nothing that would need a destructor.

  bool create() noexcept {
    info.err = errors.set_up();
    if (setjmp(errors.jump) != 0) return false;
    jpeg_create_decompress(&info);
    progress.progress_monitor = on_progress;
    info.progress = &progress;
    return true;
  }

  bool read_header(const std::uint8_t* data, std::size_t size) noexcept {
    if (setjmp(errors.jump) != 0) return false;
    jpeg_abort_decompress(&info);
    jpeg_mem_src(&info, data, size);
    jpeg_read_header(&info, TRUE);
    return true;
  }

  bool read_rows(ColorMode color, std::uint8_t* target) noexcept {
    if (setjmp(errors.jump) != 0) return false;
    jpeg_start_decompress(&info);
    const std::size_t stride = std::size_t{info.output_width} * (color == ColorMode::rgb ? 3 : 1);
    while (info.output_scanline < info.output_height) {
      std::uint8_t* const out = target + std::size_t{info.output_scanline} * stride;
      JSAMPROW scanline = direct(color) ? out : row.data();
      jpeg_read_scanlines(&info, &scanline, 1);
      if (!direct(color)) {
        convert_row(scanline, info.output_width, info.num_components == 4, color, out);
      }
    }
    jpeg_finish_decompress(&info);  // Reads to the end marker, so that its absence shows.
    return true;
  }

  /// libjpeg itself writes the wanted colour.
  [[nodiscard]] bool direct(ColorMode color) const noexcept {
    return info.num_components == 1 || (info.num_components == 3 && color == ColorMode::rgb);
  }

  [[noreturn]] void fail(const std::string& path) {
    jpeg_abort_decompress(&info);
    throw Error(ErrorCode::corrupt_data, "cannot decode " + cli::quote(path) + ": " +
                                             errors.message.data() +
                                             " (repair or remove the file)");
  }
};

JpegDecoder::JpegDecoder() : impl_(std::make_unique<Impl>()) {
  if (!impl_->create()) {
    throw Error(ErrorCode::out_of_resources,
                std::string("cannot set up libjpeg: ") + impl_->errors.message.data());
  }
}

JpegDecoder::~JpegDecoder() { jpeg_destroy_decompress(&impl_->info); }

ImageSize JpegDecoder::open(std::span<const std::uint8_t> jpeg, const std::string& path) {
  if (!impl_->read_header(jpeg.data(), jpeg.size())) impl_->fail(path);
  const jpeg_decompress_struct& info = impl_->info;
  const ImageSize size{info.image_height, info.image_width};
  if (info.num_components != 1 && info.num_components != 3 && info.num_components != 4) {
    throw Error(ErrorCode::unsupported, "cannot decode " + cli::quote(path) + ": JPEG with " +
                                            std::to_string(info.num_components) +
                                            " components; convert it to RGB");
  }
  return size;
}

ImageSize JpegDecoder::shrink(ImageSize wanted) {
  jpeg_decompress_struct& info = impl_->info;
  info.scale_denom = 8;
  // Only these are cheaper than decoding whole; libjpeg rounds the sides up.
  for (const unsigned eighths : {1U, 2U, 4U, 8U}) {
    const auto scaled = [eighths](JDIMENSION side) {
      return (static_cast<std::int64_t>(side) * eighths + 7) / 8;
    };
    const ImageSize size{scaled(info.image_height), scaled(info.image_width)};
    info.scale_num = eighths;
    if (size.height >= wanted.height && size.width >= wanted.width) return size;
  }
  return {info.image_height, info.image_width};
}

void JpegDecoder::decode(ColorMode color, std::uint8_t* target, const std::string& path) {
  jpeg_decompress_struct& info = impl_->info;
  switch (info.num_components) {
    case 1:
      info.out_color_space = color == ColorMode::gray ? JCS_GRAYSCALE : JCS_RGB;
      break;
    case 3:
      info.out_color_space = JCS_RGB;
      break;
    default:
      info.out_color_space = JCS_CMYK;
      break;
  }
  info.dct_method = JDCT_ISLOW;
  info.do_fancy_upsampling = TRUE;
  if (!impl_->direct(color)) {
    impl_->row.resize(std::size_t{info.image_width} * (info.num_components == 4 ? 4 : 3));
  }
  if (!impl_->read_rows(color, target)) impl_->fail(path);
}

}  // namespace h5pack
