/// Counts images whose contents are not what the file extension says.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>

#include "h5pack/image/image_file.hpp"

namespace h5pack {

/// Which they were. All members are thread-safe.
class MisnamedImages {
 public:
  struct Summary {
    std::int64_t count = 0;
    std::int64_t first_row = 0;  ///< The least source row of them.
    ImageFormat first_format = ImageFormat::jpeg;
  };

  void add(std::int64_t row, ImageFormat format) {
    const std::lock_guard lock(mutex_);
    if (!summary_ || row < summary_->first_row) {
      summary_ = {summary_ ? summary_->count : 0, row, format};
    }
    ++summary_->count;
  }
  /// Absent if there were none.
  [[nodiscard]] std::optional<Summary> summary() const {
    const std::lock_guard lock(mutex_);
    return summary_;
  }

 private:
  mutable std::mutex mutex_;
  std::optional<Summary> summary_;
};

}  // namespace h5pack
