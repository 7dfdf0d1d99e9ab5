/// Computes the pixel statistics of many images on several threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <chunkio/statistics.hpp>

namespace h5pack {

/// Of images of `image_bytes` that lie one behind the other, on the threads of the TBB arena.
/// Of all of them, also where the work around it is cancelled meanwhile.
/// \param none  no images, with their channels and layout.
[[nodiscard]] chunkio::PixelStatistics statistics_of(std::span<const std::uint8_t> images,
                                                     std::size_t image_bytes,
                                                     const chunkio::PixelStatistics& none);

}  // namespace h5pack
