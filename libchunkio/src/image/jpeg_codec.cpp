// JPEG through libjpeg-turbo's own interface, so that damage is an error instead of gray pixels.

// jpeglib.h uses FILE and size_t without declaring them.
#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstddef>
#include <cstdio>
#include <string>

#include <jpeglib.h>

#include <chunkio/error.hpp>

#include "image/image_codec.hpp"

namespace chunkio::image {
namespace {

struct ErrorManager {
  jpeg_error_mgr base{};  // First: libjpeg hands back a pointer to it.
  std::jmp_buf jump{};
  std::array<char, JMSG_LENGTH_MAX> message{};
};

[[noreturn]] void leave(j_common_ptr info) {
  auto* errors = reinterpret_cast<ErrorManager*>(info->err);
  errors->base.format_message(info, errors->message.data());
  std::longjmp(errors->jump, 1);
}

void on_message(j_common_ptr info, int level) {
  if (level < 0) leave(info);  // A warning: data are damaged, and what follows would be guessed.
}

// A progressive file of a few kilobytes can hold thousands of scans, each a pass over the whole
// image.
constexpr int kMaxScans = 500;

void on_progress(j_common_ptr info) {
  if (!info->is_decompressor) return;
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= kMaxScans) return;
  auto* errors = reinterpret_cast<ErrorManager*>(info->err);
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

constexpr std::int32_t scaled_down(std::int32_t value, std::int32_t eighths) noexcept {
  return static_cast<std::int32_t>(std::int64_t{value} * eighths / 8);
}

constexpr std::int32_t scaled_up(std::int32_t value, std::int32_t eighths) noexcept {
  return static_cast<std::int32_t>((std::int64_t{value} * eighths + 7) / 8);
}

/// A box of an image that is shrunk to `eighths` of its sides: all pixels that are part of it.
constexpr Box scaled(const Box& box, std::int32_t eighths) noexcept {
  const std::int32_t top = scaled_down(box.top, eighths);
  const std::int32_t left = scaled_down(box.left, eighths);
  return {top, left, scaled_up(box.top + box.height, eighths) - top,
          scaled_up(box.left + box.width, eighths) - left};
}

// Chroma is interpolated from neighbours, so that the outermost pixels of a cut are not those of
// the whole image.
constexpr std::int32_t kMargin = 2;

class JpegCodec final : public ImageCodec {
 public:
  JpegCodec() {
    if (!create()) {
      throw Error(ErrorCode::out_of_resources,
                  std::string("cannot set up libjpeg: ") + errors_.message.data());
    }
  }
  ~JpegCodec() override { jpeg_destroy_decompress(&info_); }
  JpegCodec(const JpegCodec&) = delete;
  JpegCodec& operator=(const JpegCodec&) = delete;

  Size open(std::span<const std::byte> encoded) override {
    if (!read_header(encoded)) fail();
    const int components = info_.num_components;
    if (components != 1 && components != 3 && components != 4) {
      throw Error(ErrorCode::unsupported, "it is a JPEG image of " + std::to_string(components) +
                                              " components; convert it to RGB");
    }
    return {static_cast<std::int32_t>(info_.image_height),
            static_cast<std::int32_t>(info_.image_width)};
  }

  [[nodiscard]] std::int64_t bytes(const Box& box) const noexcept override {
    constexpr std::int64_t kMostCutColumns = 2 * 32 + 2 * kMargin;
    std::int64_t sum = std::int64_t{3} * (std::int64_t{box.height} * (box.width + kMostCutColumns) +
                                          info_.image_width);
    if (jpeg_has_multiple_scans(const_cast<jpeg_decompress_struct*>(&info_)) != 0) {
      for (int i = 0; i < info_.num_components; ++i) {
        const jpeg_component_info& component = info_.comp_info[i];
        sum += std::int64_t{component.width_in_blocks} * component.height_in_blocks * DCTSIZE2 *
               std::int64_t{sizeof(JCOEF)};
      }
    }
    return sum;
  }

  DecodedRows decode(const Box& box, std::optional<Size> wanted,
                     std::vector<std::uint8_t>& rows) override {
    const std::int32_t eighths = eighths_for(box, wanted);
    info_.scale_num = static_cast<unsigned>(eighths);
    info_.scale_denom = 8;
    cmyk_ = info_.num_components == 4;
    info_.out_color_space = cmyk_ ? JCS_CMYK : JCS_RGB;
    info_.dct_method = JDCT_ISLOW;
    info_.do_fancy_upsampling = TRUE;
    const Box wanted_box = scaled(box, eighths);
    if (!start(wanted_box)) fail();
    const auto width = static_cast<std::int32_t>(info_.output_width);
    make_room(rows, wanted_box.height, width, info_.image_width);
    if (cmyk_) inks_.resize(static_cast<std::size_t>(width) * 4);
    if (!read_rows(wanted_box, rows.data())) fail();
    jpeg_abort_decompress(&info_);
    return {.image = {scaled_up(static_cast<std::int32_t>(info_.image_height), eighths),
                      scaled_up(static_cast<std::int32_t>(info_.image_width), eighths)},
            .box = wanted_box,
            .left = static_cast<std::int32_t>(left_),
            .width = width};
  }

 private:
  // The functions below call setjmp, so they hold nothing that would need a destructor.

  bool create() noexcept {
    info_.err = jpeg_std_error(&errors_.base);
    errors_.base.error_exit = leave;
    errors_.base.emit_message = on_message;
    if (setjmp(errors_.jump) != 0) return false;
    jpeg_create_decompress(&info_);
    progress_.progress_monitor = on_progress;
    info_.progress = &progress_;
    return true;
  }

  bool read_header(std::span<const std::byte> encoded) noexcept {
    if (setjmp(errors_.jump) != 0) return false;
    jpeg_abort_decompress(&info_);
    jpeg_mem_src(&info_, reinterpret_cast<const unsigned char*>(encoded.data()),
                 static_cast<unsigned long>(encoded.size()));
    jpeg_read_header(&info_, TRUE);
    return true;
  }

  /// Up to the first row of the box.
  bool start(const Box& box) noexcept {
    if (setjmp(errors_.jump) != 0) return false;
    jpeg_start_decompress(&info_);
    const auto image_width = static_cast<std::int32_t>(info_.output_width);
    const std::int32_t begin = std::max(box.left - kMargin, 0);
    const std::int32_t end = std::min(box.left + box.width + kMargin, image_width);
    left_ = static_cast<JDIMENSION>(begin);
    if (begin > 0 || end < image_width) {
      auto width = static_cast<JDIMENSION>(end - begin);
      jpeg_crop_scanline(&info_, &left_, &width);
    }
    if (box.top > 0) jpeg_skip_scanlines(&info_, static_cast<JDIMENSION>(box.top));
    return true;
  }

  bool read_rows(const Box& box, std::uint8_t* rows) noexcept {
    if (setjmp(errors_.jump) != 0) return false;
    const std::size_t stride = std::size_t{info_.output_width} * 3;
    for (std::int32_t i = 0; i < box.height; ++i) {
      std::uint8_t* const row = rows + static_cast<std::size_t>(i) * stride;
      JSAMPROW scanline = cmyk_ ? inks_.data() : row;
      jpeg_read_scanlines(&info_, &scanline, 1);
      if (cmyk_) convert_inks(row);
    }
    return true;
  }

  void convert_inks(std::uint8_t* row) const noexcept {
    for (std::size_t x = 0; x < info_.output_width; ++x) {
      const std::uint8_t* const inks = inks_.data() + 4 * x;
      for (std::size_t c = 0; c < 3; ++c) row[3 * x + c] = ink_to_light(inks[c], inks[3]);
    }
  }

  /// The fewest eighths of the sides that leave the box as many pixels as are wanted.
  static std::int32_t eighths_for(const Box& box, std::optional<Size> wanted) noexcept {
    if (!wanted) return 8;
    for (const std::int32_t eighths : {1, 2, 4}) {
      if (scaled_down(box.height, eighths) >= wanted->height &&
          scaled_down(box.width, eighths) >= wanted->width) {
        return eighths;
      }
    }
    return 8;
  }

  [[noreturn]] void fail() {
    jpeg_abort_decompress(&info_);
    throw Error(ErrorCode::corrupt_data, errors_.message.data());
  }

  jpeg_decompress_struct info_{};
  ErrorManager errors_;
  jpeg_progress_mgr progress_{};
  JDIMENSION left_ = 0;  // of the decoded columns
  bool cmyk_ = false;
  std::vector<std::uint8_t> inks_;  // of one row
};

}  // namespace

std::unique_ptr<ImageCodec> make_jpeg_codec() { return std::make_unique<JpegCodec>(); }

}  // namespace chunkio::image
