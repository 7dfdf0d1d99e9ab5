/// Converts images between NHWC and NCHW.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <chunkio/tensor.hpp>

#include "h5pack/image/image.hpp"

namespace h5pack {

/// Writes `pixels`, one image in the layout `from`, to `target` in the layout `to`. Pure;
/// thread-safe.
/// \pre both have size.pixels() * channels bytes and do not overlap.
void reorder_axes(std::span<const std::byte> pixels, ImageSize size, std::int64_t channels,
                  chunkio::Layout from, chunkio::Layout to, std::span<std::byte> target);

}  // namespace h5pack
