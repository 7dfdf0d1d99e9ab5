/// Images that fail to pack, and the error budget.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <chunkio/error.hpp>

namespace h5pack {

enum class OnError : std::uint8_t {
  fail,  ///< The first image that cannot be packed ends the pack.
  skip,  ///< Such an image is skipped and listed.
};

/// An image that cannot be packed.
struct SkippedImage {
  std::int64_t place = 0;  ///< In pack order.
  std::int64_t row = 0;    ///< In source order.
  chunkio::ErrorCode code = chunkio::ErrorCode::corrupt_data;
  std::string reason = {};  ///< One line that names the file.
};

/// Whether an error of that code concerns one image only: lack of memory and a signal do not.
[[nodiscard]] bool is_of_one_image(chunkio::ErrorCode code) noexcept;

/// Decides whether to go on. One for all splits of a run. Not thread-safe.
class ErrorBudget {
 public:
  /// \param most    more skipped images than this end the pack; absent: any number.
  /// \param source  what must still be there for a missing image to be that image's fault.
  ErrorBudget(OnError on_error, std::optional<std::int64_t> most, std::string source);

  [[nodiscard]] OnError on_error() const noexcept { return on_error_; }
  /// Counts one more.
  /// \throws Error the image's own (fail), or why too many is too many; io_failed if the whole
  ///         source is gone.
  void spend(const SkippedImage& image);
  /// What was counted since the last call, the one too many included.
  std::vector<SkippedImage> take_spent() { return std::exchange(spent_, {}); }

 private:
  OnError on_error_;
  std::optional<std::int64_t> most_;
  std::string source_;
  std::int64_t num_spent_ = 0;
  std::vector<SkippedImage> spent_;
};

}  // namespace h5pack
