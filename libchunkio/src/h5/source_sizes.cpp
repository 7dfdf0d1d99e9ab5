#include "h5/source_sizes.hpp"

#include <algorithm>

namespace chunkio::h5 {

bool are_possible(const SourceSizes& sizes, std::int64_t num_samples) {
  if (sizes.min_height < 1 || sizes.min_width < 1 || sizes.max_height < sizes.min_height ||
      sizes.max_width < sizes.min_width || sizes.most_frequent.empty()) {
    return false;
  }
  std::int64_t left = num_samples;
  return std::all_of(
      sizes.most_frequent.begin(), sizes.most_frequent.end(), [&](const SourceSizes::Count& size) {
        const bool inside = size.height >= sizes.min_height && size.height <= sizes.max_height &&
                            size.width >= sizes.min_width && size.width <= sizes.max_width;
        if (!inside || size.images < 1 || size.images > left) return false;
        left -= size.images;
        return true;
      });
}

}  // namespace chunkio::h5
