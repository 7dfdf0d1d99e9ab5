#include "h5pack/image/transform.hpp"

#include <cstring>
#include <span>

#include <opencv2/core.hpp>
#include <opencv2/imgproc.hpp>

#include <chunkio/error.hpp>

#include "cli/quote.hpp"
#include "h5pack/image/axis_order.hpp"

namespace h5pack {

namespace {

using chunkio::Error;
using chunkio::ErrorCode;

int opencv_interpolation(Interpolation interpolation) {
  switch (interpolation) {
    // The exact variants sample at pixel centres and give the same bytes on every machine.
    case Interpolation::nearest:
      return cv::INTER_NEAREST_EXACT;
    case Interpolation::bilinear:
      return cv::INTER_LINEAR_EXACT;
    case Interpolation::bicubic:
      return cv::INTER_CUBIC;
    case Interpolation::lanczos:
      return cv::INTER_LANCZOS4;
    case Interpolation::area:
      break;
  }
  return cv::INTER_AREA;
}

/// Half of `difference` >= 0, halves rounded to even, as Python's round() does for torchvision.
std::int64_t half_to_even(std::int64_t difference) noexcept {
  const std::int64_t half = difference / 2;
  return half + (difference % 2 != 0 && half % 2 != 0 ? 1 : 0);
}

cv::Mat view(const std::uint8_t* pixels, ImageSize size, std::int64_t channels) {
  return {static_cast<int>(size.height), static_cast<int>(size.width),
          CV_8UC(static_cast<int>(channels)), const_cast<std::uint8_t*>(pixels)};
}

bool fits(ImageSize inner, ImageSize outer) noexcept {
  return inner.height <= outer.height && inner.width <= outer.width;
}

}  // namespace

ImageTransform::ImageTransform(const ImageOptions& options) : options_(options) {
  if (options.center_crop && options.pad) {
    throw Error(ErrorCode::invalid_argument, "--center-crop and --pad exclude each other");
  }
  if (!options.resize || options.resize->shorter_side != 0) return;
  const ImageSize size = options.resize->size;
  if (options.center_crop && !fits(*options.center_crop, size)) {
    throw Error(ErrorCode::invalid_argument, "--center-crop " + to_string(*options.center_crop) +
                                                 " is larger than --resize " + to_string(size));
  }
  if (options.pad && !fits(size, *options.pad)) {
    throw Error(ErrorCode::invalid_argument, "--pad " + to_string(*options.pad) +
                                                 " is smaller than --resize " + to_string(size));
  }
}

std::optional<ImageSize> ImageTransform::fixed_size() const noexcept {
  if (options_.center_crop) return options_.center_crop;
  if (options_.pad) return options_.pad;
  if (options_.resize && options_.resize->shorter_side == 0) return options_.resize->size;
  return std::nullopt;
}

ImageSize ImageTransform::resized(ImageSize in) const noexcept {
  if (!options_.resize) return in;
  const std::int64_t side = options_.resize->shorter_side;
  if (side == 0) return options_.resize->size;
  return in.height <= in.width ? ImageSize{side, side * in.width / in.height}
                               : ImageSize{side * in.height / in.width, side};
}

ImageSize ImageTransform::output_size(ImageSize in, const std::string& name) const {
  const ImageSize size = resized(in);
  const std::string have = cli::quote(name) + " is " + to_string(in) +
                           (size == in ? "" : ", resized " + to_string(size));
  if (options_.center_crop) {
    if (!fits(*options_.center_crop, size)) {
      throw Error(ErrorCode::unsupported, have + ": too small for --center-crop " +
                                              to_string(*options_.center_crop) +
                                              "; --resize can enlarge it first");
    }
    return *options_.center_crop;
  }
  if (options_.pad) {
    if (!fits(size, *options_.pad)) {
      throw Error(ErrorCode::unsupported, have + ": too large for --pad " +
                                              to_string(*options_.pad) +
                                              "; --resize can shrink it first");
    }
    return *options_.pad;
  }
  return size;
}

bool ImageTransform::is_identity(ImageSize in) const noexcept {
  const auto keeps = [in](const std::optional<ImageSize>& size) { return !size || *size == in; };
  return resized(in) == in && keeps(options_.center_crop) && keeps(options_.pad) &&
         (options_.layout == chunkio::Layout::nhwc || options_.color == ColorMode::gray);
}

void ImageTransform::apply(const std::uint8_t* in, ImageSize decoded, ImageSize original,
                           std::uint8_t* target) {
  const std::int64_t channels = options_.channels();
  const bool planar = options_.layout == chunkio::Layout::nchw && channels > 1;
  const ImageSize middle = resized(original);
  const auto frame = options_.center_crop ? options_.center_crop : options_.pad;
  const ImageSize last = frame.value_or(middle);
  const bool framing = last != middle;

  // The last of the steps that take place writes to `target`, the others to scratch.
  const std::uint8_t* pixels = in;
  const auto output = [&](std::vector<std::uint8_t>& scratch, ImageSize step, bool is_last) {
    if (is_last) return target;
    scratch.resize(static_cast<std::size_t>(step.pixels() * channels));
    return scratch.data();
  };
  if (middle != decoded) {
    std::uint8_t* const out = output(resized_, middle, !framing && !planar);
    cv::Mat resized_view = view(out, middle, channels);
    cv::resize(view(pixels, decoded, channels), resized_view, resized_view.size(), 0, 0,
               opencv_interpolation(options_.interpolation));
    pixels = out;
  }
  if (framing) {
    std::uint8_t* const out = output(framed_, last, !planar);
    const cv::Mat from = view(pixels, middle, channels);
    cv::Mat to = view(out, last, channels);
    const auto rectangle = [](std::int64_t left, std::int64_t top, const cv::Mat& of) {
      return cv::Rect(static_cast<int>(left), static_cast<int>(top), of.cols, of.rows);
    };
    if (options_.center_crop) {
      from(rectangle(half_to_even(middle.width - last.width),
                     half_to_even(middle.height - last.height), to))
          .copyTo(to);
    } else {
      to.setTo(cv::Scalar::all(0));
      from.copyTo(
          to(rectangle((last.width - middle.width) / 2, (last.height - middle.height) / 2, from)));
    }
    pixels = out;
  }
  if (planar) {
    const auto bytes = static_cast<std::size_t>(last.pixels() * channels);
    reorder_axes(std::as_bytes(std::span(pixels, bytes)), last, channels, chunkio::Layout::nhwc,
                 chunkio::Layout::nchw, std::as_writable_bytes(std::span(target, bytes)));
  } else if (pixels == in) {
    std::memcpy(target, in, static_cast<std::size_t>(last.pixels() * channels));
  }
}

}  // namespace h5pack
