#include "h5pack/image/image_sizes.hpp"

#include <algorithm>
#include <cstddef>

namespace h5pack {

chunkio::SourceSizes ImageSizes::summary() const {
  // Photos from anywhere have thousands of sizes; nobody reads further.
  constexpr std::size_t kMostKept = 64;
  chunkio::SourceSizes sizes;
  sizes.min_height = counts_.begin()->first.first;
  sizes.max_height = counts_.rbegin()->first.first;
  sizes.min_width = sizes.max_width = counts_.begin()->first.second;
  for (const auto& [size, images] : counts_) {
    sizes.min_width = std::min(sizes.min_width, size.second);
    sizes.max_width = std::max(sizes.max_width, size.second);
    sizes.most_frequent.push_back({size.first, size.second, images});
  }
  // Stable: equals stay as the map has them.
  std::stable_sort(sizes.most_frequent.begin(), sizes.most_frequent.end(),
                   [](const auto& a, const auto& b) { return a.images > b.images; });
  sizes.most_frequent.resize(std::min(sizes.most_frequent.size(), kMostKept));
  return sizes;
}

}  // namespace h5pack
