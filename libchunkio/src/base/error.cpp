#include <array>
#include <cstddef>

#include <chunkio/error.hpp>

namespace chunkio {

std::string_view to_string(ErrorCode code) noexcept {
  // By number.
  static constexpr std::array<std::string_view, 14> kNames{
      "unknown",      "invalid_argument", "not_found",        "unsupported", "refused_by_policy",
      "corrupt_data", "digest_mismatch",  "io_failed",        "no_space",    "output_exists",
      "hdf5_failed",  "cuda_failed",      "out_of_resources", "cancelled"};
  const auto number = static_cast<std::size_t>(code);
  return kNames[number < kNames.size() ? number : 0];
}

Error::Error(ErrorCode code, const std::string& message, std::string_view option,
             std::string_view other)
    : std::runtime_error(message), code_(code) {
  for (const std::string_view name : {option, other}) {
    if (!name.empty()) options_[num_options_++] = name;
  }
}

Error Error::with_message(const std::string& message) const {
  return {code_, message, options_[0], options_[1]};
}

Error::~Error() = default;

}  // namespace chunkio
