#include "parallel_statistics.hpp"

#include <tbb/blocked_range.h>
#include <tbb/parallel_reduce.h>
#include <tbb/task_group.h>

namespace h5pack {

using chunkio::PixelStatistics;

PixelStatistics statistics_of(std::span<const std::uint8_t> pictures, std::size_t picture_bytes,
                              const PixelStatistics& none) {
  constexpr std::size_t kPicturesOfATask = 64;
  // What is bound to work that is cancelled ends with a part of the sums, and tells nobody.
  tbb::task_group_context whole(tbb::task_group_context::isolated);
  return tbb::parallel_reduce(
      tbb::blocked_range<std::size_t>(0, pictures.size() / picture_bytes, kPicturesOfATask), none,
      [&](const auto& range, PixelStatistics sums) {
        for (std::size_t i = range.begin(); i != range.end(); ++i) {
          sums.add(pictures.subspan(i * picture_bytes, picture_bytes));
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
