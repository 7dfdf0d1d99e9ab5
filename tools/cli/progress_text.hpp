/// The text of a progress display; progress.hpp draws it.
#pragma once

#include <cstdint>
#include <string>

namespace cli {

struct ProgressState {
  std::string label = {};  ///< "packing train"
  std::string unit = {};   ///< "images"
  std::int64_t total = 1;
  std::int64_t done = 0;  ///< Those that were skipped included.
  std::int64_t skipped = 0;
  double seconds = 0;  ///< Since the start.
};

/// "packing train [=====>    ]  45% 22,500/50,000 images, 12,345 images/s, 0:03 left, 2 skipped",
/// at most
/// `columns` - 1 wide: the bar gives way first, then the end of the text.
std::string progress_bar(const ProgressState& state, int columns);

/// The same without the bar, for logs: "packing train: 45% (22,500 of 50,000 images), ...".
std::string progress_line(const ProgressState& state);

/// "1,234,567".
std::string format_count(std::int64_t count);

/// "1 image", "1,234 images". \param singular  takes an s.
std::string counted(std::int64_t count, const std::string& singular);

/// "0:03", "12:34", "1:02:03"; rounded up to whole seconds.
std::string format_duration(double seconds);

}  // namespace cli
