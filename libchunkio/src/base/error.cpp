#include <chunkio/error.hpp>

namespace chunkio {

std::string_view to_string(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::invalid_argument:
      return "invalid_argument";
    case ErrorCode::not_found:
      return "not_found";
    case ErrorCode::unsupported:
      return "unsupported";
    case ErrorCode::refused_by_policy:
      return "refused_by_policy";
    case ErrorCode::corrupt_data:
      return "corrupt_data";
    case ErrorCode::digest_mismatch:
      return "digest_mismatch";
    case ErrorCode::io_failed:
      return "io_failed";
    case ErrorCode::no_space:
      return "no_space";
    case ErrorCode::output_exists:
      return "output_exists";
    case ErrorCode::hdf5_failed:
      return "hdf5_failed";
    case ErrorCode::cuda_failed:
      return "cuda_failed";
    case ErrorCode::out_of_resources:
      return "out_of_resources";
    case ErrorCode::cancelled:
      return "cancelled";
  }
  return "unknown";
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
