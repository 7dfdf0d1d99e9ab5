#include "h5pack/sources/skipped_image.hpp"

#include <sys/stat.h>

#include "cli/quote.hpp"

namespace h5pack {

using chunkio::Error;
using chunkio::ErrorCode;

bool is_of_one_image(ErrorCode code) noexcept {
  return code == ErrorCode::corrupt_data || code == ErrorCode::unsupported ||
         code == ErrorCode::refused_by_policy || code == ErrorCode::not_found ||
         code == ErrorCode::io_failed;
}

ErrorBudget::ErrorBudget(OnError on_error, std::optional<std::int64_t> most, std::string source)
    : on_error_(on_error), most_(most), source_(std::move(source)) {}

void ErrorBudget::spend(const SkippedImage& image) {
  if (on_error_ == OnError::fail) {
    throw Error(image.code, image.reason + "; --on-error skip skips and lists such images");
  }
  ++num_spent_;
  spent_.push_back(image);
  // A disk that was unmounted would otherwise look like a million bad images.
  struct ::stat status {};
  if ((image.code == ErrorCode::not_found || image.code == ErrorCode::io_failed) &&
      ::stat(source_.c_str(), &status) != 0) {
    throw Error(ErrorCode::io_failed,
                "the source " + cli::quote(source_) + " is not there any more; bring it back");
  }
  if (most_ && num_spent_ > *most_) {
    throw Error(image.code,
                "more than " + std::to_string(*most_) +
                    " images cannot be packed (--max-errors), the last one: " + image.reason);
  }
}

}  // namespace h5pack
