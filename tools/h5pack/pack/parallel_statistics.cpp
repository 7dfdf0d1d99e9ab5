#include "h5pack/pack/parallel_statistics.hpp"

#include <tbb/blocked_range.h>
#include <tbb/parallel_reduce.h>
#include <tbb/task_group.h>

namespace h5pack {

using chunkio::PixelStatistics;

PixelStatistics statistics_of(std::span<const std::uint8_t> images, std::size_t image_bytes,
                              const PixelStatistics& none) {
  constexpr std::size_t kImagesOfATask = 64;
  // Bound to a pipeline that is cancelled, this would return a part of the sums without an error.
  tbb::task_group_context whole(tbb::task_group_context::isolated);
  return tbb::parallel_reduce(
      tbb::blocked_range<std::size_t>(0, images.size() / image_bytes, kImagesOfATask), none,
      [&](const auto& range, PixelStatistics sums) {
        for (std::size_t i = range.begin(); i != range.end(); ++i) {
          sums.add(images.subspan(i * image_bytes, image_bytes));
        }
        return sums;
      },
      [](PixelStatistics a, const PixelStatistics& b) {
        a.merge(b);
        return a;
      },
      whole);
}

}  // namespace h5pack
