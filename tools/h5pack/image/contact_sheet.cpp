#include "h5pack/image/contact_sheet.hpp"

#include <algorithm>
#include <cmath>

#include <opencv2/core.hpp>
#include <opencv2/imgproc.hpp>

#include <chunkio/error.hpp>

#include "h5pack/image/axis_order.hpp"
#include "h5pack/image/image_codecs.hpp"

namespace h5pack {
namespace {

// Pixels. An image is drawn with its longer side between these two where a whole factor allows.
constexpr int kSmallestSide = 96;
constexpr int kLargestSide = 256;
constexpr int kMargin = 24;
constexpr int kGap = 14;
constexpr int kCaptionLine = 17;
constexpr int kCaptionGap = 5;
constexpr int kTitleHeight = 34;
constexpr std::int64_t kMaxSheetSide = 32'000;  // JPEG ends at 65,500; viewers long before

constexpr int kFont = cv::FONT_HERSHEY_SIMPLEX;
constexpr double kCaptionScale = 0.42;
constexpr double kTitleScale = 0.62;
const cv::Scalar kPaper(255, 255, 255);
const cv::Scalar kInk(40, 40, 40);

/// OpenCV's fonts have ASCII only: other characters are drawn as '?', one for each.
std::string drawable(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x80 && byte < 0xc0) continue;  // the rest of a UTF-8 character
    out += byte >= 0x20 && byte < 0x7f ? c : '?';
  }
  return out;
}

int text_width(const std::string& text, double scale) {
  return cv::getTextSize(text, kFont, scale, 1, nullptr).width;
}

/// The text, its end replaced by "..." if it is wider than `width`.
std::string fitted(const std::string& text, double scale, int width) {
  std::string shown = drawable(text);
  if (text_width(shown, scale) <= width) return shown;
  while (!shown.empty() && text_width(shown + "...", scale) > width) shown.pop_back();
  return shown + "...";
}

/// The stored pixels as OpenCV wants them: gray, or BGR.
cv::Mat to_mat(const ContactSheet& sheet, const SheetImage& image) {
  const int height = static_cast<int>(sheet.height);
  const int width = static_cast<int>(sheet.width);
  const int channels = static_cast<int>(sheet.channels);
  if (channels == 3 || channels == 4) {
    cv::Mat all(height, width, CV_8UC(channels));
    reorder_axes(image.pixels, {sheet.height, sheet.width}, channels, sheet.layout,
                 chunkio::Layout::nhwc,
                 {reinterpret_cast<std::byte*>(all.data), image.pixels.size()});
    cv::cvtColor(all, all, channels == 3 ? cv::COLOR_RGB2BGR : cv::COLOR_RGBA2BGR);
    return all;
  }
  // OpenCV takes no const pixels; they are only read.
  auto* const pixels =
      const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(image.pixels.data()));
  if (sheet.layout == chunkio::Layout::nchw) return cv::Mat(height, width, CV_8UC1, pixels).clone();
  return cv::Mat(height * width, channels, CV_8UC1, pixels).col(0).clone().reshape(1, height);
}

/// The size an image is drawn at.
cv::Size drawn_size(std::int64_t height, std::int64_t width) {
  const std::int64_t longer = std::max(height, width);
  if (longer <= kLargestSide) {
    const std::int64_t factor = std::max<std::int64_t>(1, (kSmallestSide + longer - 1) / longer);
    return {static_cast<int>(width * factor), static_cast<int>(height * factor)};
  }
  const double factor = static_cast<double>(kLargestSide) / static_cast<double>(longer);
  const auto scaled = [&](std::int64_t side) {
    return std::max(1, static_cast<int>(std::lround(static_cast<double>(side) * factor)));
  };
  return {scaled(width), scaled(height)};
}

void draw_text(cv::Mat& canvas, const std::string& text, cv::Point baseline, double scale) {
  cv::putText(canvas, text, baseline, kFont, scale, kInk, 1, cv::LINE_AA);
}

}  // namespace

EncodedSheet draw_contact_sheet(const ContactSheet& sheet, const std::string& extension) {
  const cv::Size cell = drawn_size(sheet.height, sheet.width);
  std::size_t caption_lines = 0;
  for (const SheetImage& image : sheet.images) {
    caption_lines = std::max(caption_lines, image.captions.size());
  }
  const int captions_height =
      caption_lines == 0 ? 0 : kCaptionGap + kCaptionLine * static_cast<int>(caption_lines);

  // Narrow images still get columns that a caption fits into.
  const int column_width = caption_lines == 0 ? cell.width : std::max(cell.width, kSmallestSide);
  const int row_height = cell.height + captions_height;
  const auto count = static_cast<std::int64_t>(sheet.images.size());
  const std::int64_t rows = (count + sheet.columns - 1) / sheet.columns;
  const std::int64_t width =
      2 * kMargin + sheet.columns * column_width + (sheet.columns - 1) * kGap;
  const std::int64_t height = 2 * kMargin + kTitleHeight + rows * row_height + (rows - 1) * kGap;
  if (width > kMaxSheetSide || height > kMaxSheetSide) {
    throw chunkio::Error(chunkio::ErrorCode::out_of_resources,
                         "a sheet of " + std::to_string(width) + " x " + std::to_string(height) +
                             " pixels is too large; use smaller --grid-rows and --grid-columns");
  }

  cv::Mat canvas(static_cast<int>(height), static_cast<int>(width), CV_8UC3, kPaper);
  const int text_room = static_cast<int>(width) - 2 * kMargin;
  draw_text(canvas, fitted(sheet.title, kTitleScale, text_room), {kMargin, kMargin + 14},
            kTitleScale);
  for (std::int64_t i = 0; i < count; ++i) {
    const SheetImage& image = sheet.images[static_cast<std::size_t>(i)];
    const int left = kMargin + static_cast<int>(i % sheet.columns) * (column_width + kGap);
    const int top =
        kMargin + kTitleHeight + static_cast<int>(i / sheet.columns) * (row_height + kGap);
    cv::Mat drawn = to_mat(sheet, image);
    if (drawn.size() != cell) {
      const bool enlarge = cell.width > drawn.cols;
      cv::resize(drawn, drawn, cell, 0, 0, enlarge ? cv::INTER_NEAREST : cv::INTER_AREA);
    }
    if (drawn.channels() == 1) cv::cvtColor(drawn, drawn, cv::COLOR_GRAY2BGR);
    const int indent = (column_width - cell.width) / 2;
    drawn.copyTo(canvas(cv::Rect(left + indent, top, cell.width, cell.height)));
    int baseline = top + cell.height + kCaptionGap;
    for (const std::string& caption : image.captions) {
      const std::string shown = fitted(caption, kCaptionScale, column_width);
      const int centred = left + (column_width - text_width(shown, kCaptionScale)) / 2;
      baseline += kCaptionLine;
      draw_text(canvas, shown, {centred, baseline - 5}, kCaptionScale);
    }
  }

  EncodedSheet encoded{.width = width, .height = height};
  try {
    if (encode_image(extension, canvas, encoded.bytes)) return encoded;
  } catch (const cv::Exception&) {
    // Reported below, in one line.
  }
  throw chunkio::Error(chunkio::ErrorCode::unsupported,
                       "this OpenCV cannot write " + extension + " files; use another extension");
}

}  // namespace h5pack
