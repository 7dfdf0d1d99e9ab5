/// Counts how many images of the source have which size.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include <chunkio/dataset.hpp>

#include "h5pack/image/image.hpp"

namespace h5pack {

/// A histogram over exact sizes, before any resizing. Not thread-safe.
class ImageSizes {
 public:
  /// By (height, width).
  using Counts = std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t>;

  void add(ImageSize size, std::int64_t count = 1) { counts_[{size.height, size.width}] += count; }
  void merge(const ImageSizes& other) {
    for (const auto& [size, count] : other.counts_) counts_[size] += count;
  }
  [[nodiscard]] const Counts& counts() const noexcept { return counts_; }
  /// For the file: the range, and the most frequent sizes (equally frequent ones by size).
  /// \pre at least one size was added.
  [[nodiscard]] chunkio::SourceSizes summary() const;

 private:
  Counts counts_;
};

}  // namespace h5pack
