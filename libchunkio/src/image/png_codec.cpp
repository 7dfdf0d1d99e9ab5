// PNG through libpng. Alpha is left out, and of 16 bits the upper 8 are taken, as Pillow does.

#include <png.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <string>

#include <chunkio/error.hpp>

#include "image/image_codec.hpp"

namespace chunkio::image {
namespace {

class PngCodec final : public ImageCodec {
 public:
  ~PngCodec() override { png_destroy_read_struct(&png_, &info_, nullptr); }

  Size open(std::span<const std::byte> encoded) override {
    png_destroy_read_struct(&png_, &info_, nullptr);
    rest_ = encoded;
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, on_error, on_warning);
    info_ = png_ != nullptr ? png_create_info_struct(png_) : nullptr;
    if (info_ == nullptr) throw Error(ErrorCode::out_of_resources, "cannot set up libpng");
    if (!read_header()) fail();
    return size_;
  }

  [[nodiscard]] std::int64_t bytes(const Box& box) const noexcept override {
    const std::int64_t row = std::int64_t{3} * size_.width;
    return is_interlaced_ ? row * (size_.height + 1)
                          : 2 * row + std::int64_t{3} * box.width * box.height;
  }

  DecodedRows decode(const Box& box, std::optional<Size> /*wanted*/,
                     std::vector<std::uint8_t>& rows) override {
    const auto row_bytes = static_cast<std::size_t>(size_.width) * 3;
    if (is_interlaced_) {
      // Each pass writes some pixels of all rows.
      make_room(rows, size_.height, size_.width, size_.width);
      if (!read_passes(rows.data(), row_bytes)) fail();
      const auto first = static_cast<std::size_t>(box.top) * row_bytes;
      std::memmove(rows.data(), rows.data() + first,
                   static_cast<std::size_t>(box.height) * row_bytes);
      return {.image = size_, .box = box, .left = 0, .width = size_.width};
    }
    make_room(rows, box.height, box.width, size_.width);
    row_.resize(row_bytes);
    if (!read_rows(box, rows.data())) fail();
    return {.image = size_, .box = box, .left = box.left, .width = box.width};
  }

 private:
  [[noreturn]] static void on_error(png_structp png, png_const_charp message) {
    auto* const codec = static_cast<PngCodec*>(png_get_error_ptr(png));
    std::snprintf(codec->message_.data(), codec->message_.size(), "%s", message);
    std::longjmp(codec->jump_, 1);
  }
  // Of profiles and comments, mostly.
  static void on_warning(png_structp /*png*/, png_const_charp /*message*/) {}
  static void read(png_structp png, png_bytep out, std::size_t count) {
    auto* const codec = static_cast<PngCodec*>(png_get_io_ptr(png));
    if (count > codec->rest_.size()) png_error(png, "it ends early");
    std::memcpy(out, codec->rest_.data(), count);
    codec->rest_ = codec->rest_.subspan(count);
  }

  // The functions below call setjmp, so they hold nothing that would need a destructor.

  bool read_header() noexcept {
    if (setjmp(jump_) != 0) return false;
    png_set_read_fn(png_, this, read);
    png_set_user_limits(png_, kMaxSide, kMaxSide);
    // What is no pixels is bounded.
    png_set_chunk_malloc_max(png_, std::size_t{8} << 20);
    png_read_info(png_, info_);
    size_ = {static_cast<std::int32_t>(png_get_image_height(png_, info_)),
             static_cast<std::int32_t>(png_get_image_width(png_, info_))};
    png_set_expand(png_);
    png_set_strip_16(png_);
    png_set_gray_to_rgb(png_);
    png_set_strip_alpha(png_);
    is_interlaced_ = png_set_interlace_handling(png_) > 1;
    png_read_update_info(png_, info_);
    if (png_get_rowbytes(png_, info_) != std::size_t{3} * static_cast<unsigned>(size_.width)) {
      png_error(png_, "its rows are not RGB");
    }
    return true;
  }

  bool read_passes(std::uint8_t* rows, std::size_t row_bytes) noexcept {
    if (setjmp(jump_) != 0) return false;
    constexpr int kPasses = 7;
    for (int pass = 0; pass < kPasses; ++pass) {
      for (std::int32_t i = 0; i < size_.height; ++i) {
        png_read_row(png_, rows + static_cast<std::size_t>(i) * row_bytes, nullptr);
      }
    }
    return true;
  }

  bool read_rows(const Box& box, std::uint8_t* rows) noexcept {
    if (setjmp(jump_) != 0) return false;
    const auto bytes = static_cast<std::size_t>(box.width) * 3;
    for (std::int32_t i = 0; i < box.top + box.height; ++i) {
      png_read_row(png_, row_.data(), nullptr);
      if (i < box.top) continue;
      std::memcpy(rows + static_cast<std::size_t>(i - box.top) * bytes,
                  row_.data() + static_cast<std::size_t>(box.left) * 3, bytes);
    }
    return true;
  }

  [[noreturn]] void fail() { throw Error(ErrorCode::corrupt_data, message_.data()); }

  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::jmp_buf jump_{};
  std::array<char, 256> message_{};
  std::span<const std::byte> rest_;
  Size size_;
  bool is_interlaced_ = false;
  std::vector<std::uint8_t> row_;
};

}  // namespace

std::unique_ptr<ImageCodec> make_png_codec() { return std::make_unique<PngCodec>(); }

}  // namespace chunkio::image
