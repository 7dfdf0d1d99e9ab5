#include "axis_order.hpp"

#include <algorithm>

namespace h5pack {

void reorder_axes(std::span<const std::byte> pixels, PictureSize size, std::int64_t channels,
                  chunkio::Layout from, chunkio::Layout to, std::span<std::byte> target) {
  if (from == to || channels == 1) {
    std::copy(pixels.begin(), pixels.end(), target.begin());
    return;
  }
  // A matrix of pixels by channels, or the other way round.
  const auto area = static_cast<std::size_t>(size.pixels());
  const auto planes = static_cast<std::size_t>(channels);
  const std::size_t rows = from == chunkio::Layout::nhwc ? area : planes;
  const std::size_t columns = from == chunkio::Layout::nhwc ? planes : area;
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < columns; ++j) target[j * rows + i] = pixels[i * columns + j];
  }
}

}  // namespace h5pack
