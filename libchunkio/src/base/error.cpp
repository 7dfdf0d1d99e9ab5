#include <chunkio/error.hpp>

namespace chunkio {

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
