#include "h5pack/image/decode.hpp"

#include <algorithm>
#include <iostream>
#include <new>
#include <vector>

#include <opencv2/core.hpp>
#include <opencv2/core/utils/logger.hpp>
#include <opencv2/imgcodecs.hpp>

#include <chunkio/error.hpp>

#include "cli/quote.hpp"
#include "h5pack/image/axis_order.hpp"
#include "h5pack/image/image_codecs.hpp"
#include "h5pack/image/jpeg_decoder.hpp"
#include "h5pack/image/orientation.hpp"

namespace h5pack {

namespace {

using chunkio::Error;
using chunkio::ErrorCode;

constexpr std::uint8_t high_byte(std::uint8_t sample) noexcept { return sample; }
constexpr std::uint8_t high_byte(std::uint16_t sample) noexcept {
  return static_cast<std::uint8_t>(sample >> 8);
}

/// OpenCV's BGR rows to the wanted colour.
template <class Sample>
void convert(const cv::Mat& bgr, ColorMode color, std::uint8_t* target) {
  for (int y = 0; y < bgr.rows; ++y) {
    const Sample* pixel = bgr.ptr<Sample>(y);
    for (int x = 0; x < bgr.cols; ++x, pixel += 3) {
      put_pixel(high_byte(pixel[2]), high_byte(pixel[1]), high_byte(pixel[0]), color, target);
    }
  }
}

}  // namespace

struct ImageDecoder::Impl {
  ColorMode color;
  OrientationMode orientation_mode;
  std::int64_t max_pixels;
  Bytes keep;
  std::vector<std::uint8_t> kept;  // Of the opened file, if they are kept.
  std::string path;
  cli::FileBytes contents;
  std::vector<std::uint8_t> given;    // Instead of contents.
  std::optional<ImageFormat> format;  // Absent: `planes` holds the image.
  int orientation = 1;
  ImageSize stored;  // Before orientation, as decode_stored() gives it.
  JpegDecoder jpeg;
  cv::Mat bgr;
  std::vector<std::uint8_t> planes;
  std::vector<std::uint8_t> turned;  // Pixels on their way to being turned upright.

  Impl(ColorMode color_, OrientationMode orientation_mode_, std::int64_t max_pixels_, Bytes keep_)
      : color(color_), orientation_mode(orientation_mode_), max_pixels(max_pixels_), keep(keep_) {}

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorCode::corrupt_data,
                "cannot decode " + cli::quote(path) + ": " + what + " (repair or remove the file)");
  }

  [[noreturn]] void throw_no_memory() const {
    throw Error(ErrorCode::out_of_resources, "not enough memory to decode " + cli::quote(path) +
                                                 "; use fewer --threads, or a lower --max-pixels");
  }

  void check_pixel_limit(ImageSize size) const {
    if (size.height == 0 || size.width <= max_pixels / size.height) return;
    throw Error(ErrorCode::refused_by_policy,
                "cannot decode " + cli::quote(path) + ": it declares " + to_string(size) +
                    " pixels, more than the limit of " + std::to_string(max_pixels) +
                    " (scale it down, remove it, or raise --max-pixels)");
  }

  /// OpenCV tells sizes only by decoding.
  void decode_with_opencv(const ImageFile& file) {
    // libpng's own limit, of which it would tell stderr.
    constexpr std::int64_t kMaxSide = 1'000'000;
    if (std::max(file.size.height, file.size.width) > kMaxSide) {
      throw Error(ErrorCode::unsupported, "cannot decode " + cli::quote(path) + ": it declares " +
                                              to_string(file.size) + " pixels, and no side may " +
                                              "be longer than " + std::to_string(kMaxSide));
    }
    const cv::Mat bytes(1, static_cast<int>(file.bytes.size()), CV_8U, file.bytes.data());
    try {
      decode_image(bytes, cv::IMREAD_COLOR | cv::IMREAD_ANYDEPTH | cv::IMREAD_IGNORE_ORIENTATION,
                   bgr);
    } catch (const cv::Exception& error) {
      if (error.code == cv::Error::StsNoMem) throw_no_memory();
      fail(error.err);
    } catch (const std::bad_alloc&) {
      throw_no_memory();
    }
    if (bgr.empty()) fail("the image data are damaged or of an unknown kind");
    if (bgr.depth() != CV_8U && bgr.depth() != CV_16U) {
      throw Error(ErrorCode::unsupported,
                  "cannot decode " + cli::quote(path) +
                      ": its samples are neither 8 nor 16 bits; convert it");
    }
    stored = {bgr.rows, bgr.cols};
    if (stored != file.size || bgr.channels() != 3) fail("the image is not what its header says");
  }

  /// \param bytes  of the file; rewritten.
  ImageSize open(std::span<std::uint8_t> bytes) {
    if (keep == Bytes::kept) kept.assign(bytes.begin(), bytes.end());
    const ImageFile file = examine_image(bytes, path);
    format = file.format;
    orientation = orientation_mode == OrientationMode::apply ? file.orientation : 1;
    if (file.format == ImageFormat::jpeg) {
      stored = jpeg.open(file.bytes, path);
      check_pixel_limit(stored);
    } else {
      check_pixel_limit(file.size);
      decode_with_opencv(file);
    }
    return oriented_size(stored, orientation);
  }

  void convert_planes(std::uint8_t* target) const {
    const auto plane = static_cast<std::size_t>(stored.pixels());
    if (color == ColorMode::rgb) {
      reorder_axes(std::as_bytes(std::span(planes)), stored, 3, chunkio::Layout::nchw,
                   chunkio::Layout::nhwc, std::as_writable_bytes(std::span(target, 3 * plane)));
      return;
    }
    for (std::size_t i = 0; i < plane; ++i) {
      target[i] = luma(planes[i], planes[plane + i], planes[2 * plane + i]);
    }
  }

  void decode_stored(std::uint8_t* target) {
    if (!format) {
      convert_planes(target);
    } else if (format == ImageFormat::jpeg) {
      jpeg.decode(color, target, path);
    } else if (bgr.depth() == CV_16U) {
      convert<std::uint16_t>(bgr, color, target);
    } else {
      convert<std::uint8_t>(bgr, color, target);
    }
  }
};

OpenCvSilence::OpenCvSilence()
    : cerr_(std::cerr.rdbuf(nullptr)),
      log_level_(cv::utils::logging::setLogLevel(cv::utils::logging::LOG_LEVEL_SILENT)) {}

OpenCvSilence::~OpenCvSilence() {
  cv::utils::logging::setLogLevel(static_cast<cv::utils::logging::LogLevel>(log_level_));
  std::cerr.rdbuf(cerr_);
}

ImageDecoder::ImageDecoder(ColorMode color, OrientationMode orientation, std::int64_t max_pixels,
                           Bytes bytes)
    : impl_(std::make_unique<Impl>(color, orientation, max_pixels, bytes)) {}
ImageDecoder::ImageDecoder(ImageDecoder&&) noexcept = default;
ImageDecoder& ImageDecoder::operator=(ImageDecoder&&) noexcept = default;
ImageDecoder::~ImageDecoder() = default;

ImageSize ImageDecoder::open(const std::string& path,
                             const std::optional<cli::FileStamp>& expected) {
  impl_->path = path;
  impl_->contents.read(path, expected);
  return impl_->open(impl_->contents.bytes());
}

ImageSize ImageDecoder::open_encoded(std::span<const std::byte> bytes, const std::string& name) {
  impl_->path = name;
  const auto* const begin = reinterpret_cast<const std::uint8_t*>(bytes.data());
  impl_->given.assign(begin, begin + bytes.size());
  return impl_->open(impl_->given);
}

std::span<std::uint8_t> ImageDecoder::open_planes(ImageSize size) {
  impl_->format.reset();
  impl_->orientation = 1;
  impl_->stored = size;
  impl_->planes.resize(static_cast<std::size_t>(3 * size.pixels()));
  return impl_->planes;
}

std::span<const std::uint8_t> ImageDecoder::encoded() const noexcept { return impl_->kept; }
std::optional<ImageFormat> ImageDecoder::format() const noexcept { return impl_->format; }
ImageSize ImageDecoder::stored_size() const noexcept { return impl_->stored; }
int ImageDecoder::orientation() const noexcept { return impl_->orientation; }

std::optional<ImageFormat> ImageDecoder::misnamed() const noexcept {
  const std::optional<ImageFormat> said = format_by_name(impl_->path);
  return said && impl_->format && said != impl_->format ? impl_->format : std::nullopt;
}

ImageSize ImageDecoder::shrink(ImageSize wanted) {
  if (impl_->format == ImageFormat::jpeg) {
    // Turning is its own inverse as far as sizes go.
    impl_->stored = impl_->jpeg.shrink(oriented_size(wanted, impl_->orientation));
  }
  return oriented_size(impl_->stored, impl_->orientation);
}

void ImageDecoder::decode(std::uint8_t* target) {
  if (impl_->orientation == 1) {
    impl_->decode_stored(target);
    return;
  }
  const std::int64_t channels = impl_->color == ColorMode::rgb ? 3 : 1;
  impl_->turned.resize(static_cast<std::size_t>(impl_->stored.pixels() * channels));
  impl_->decode_stored(impl_->turned.data());
  orient_pixels(impl_->turned.data(), impl_->stored, channels, impl_->orientation, target);
}

}  // namespace h5pack
