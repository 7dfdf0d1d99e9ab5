/// Images that hold something else than their names say, a PNG file called .jpg: decoded all the
/// same, and worth a word.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>

#include "picture_file.hpp"

namespace h5pack {

/// Which they were. All members are thread-safe.
class MisnamedPictures {
 public:
  struct Summary {
    std::int64_t count = 0;
    std::int64_t first_row = 0;  ///< The least source row of them.
    PictureFormat first_format = PictureFormat::jpeg;
  };

  void add(std::int64_t row, PictureFormat format) {
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
