#include "h5pack/image/axis_order.hpp"

#include <algorithm>
#include <vector>

#include <opencv2/core.hpp>

namespace h5pack {

void reorder_axes(std::span<const std::byte> pixels, ImageSize size, std::int64_t channels,
                  chunkio::Layout from, chunkio::Layout to, std::span<std::byte> target) {
  if (from == to || channels == 1) {
    std::copy(pixels.begin(), pixels.end(), target.begin());
    return;
  }
  const auto area = static_cast<std::size_t>(size.pixels());
  // OpenCV has no const view; what is read is not written.
  auto* const source = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(pixels.data()));
  auto* const out = reinterpret_cast<unsigned char*>(target.data());
  const bool to_planes = to == chunkio::Layout::nchw;
  const int rows = static_cast<int>(size.height);
  const int columns = static_cast<int>(size.width);
  cv::Mat interleaved(rows, columns, CV_8UC(static_cast<int>(channels)), to_planes ? source : out);
  std::vector<cv::Mat> planes;
  for (std::size_t c = 0; c < static_cast<std::size_t>(channels); ++c) {
    planes.emplace_back(rows, columns, CV_8UC1, (to_planes ? out : source) + c * area);
  }
  if (to_planes) {
    cv::split(interleaved, planes);
  } else {
    cv::merge(planes, interleaved);
  }
}

}  // namespace h5pack
