/// Refuses arguments that are out of range.
#pragma once

#include <string>

#include <chunkio/error.hpp>

namespace chunkio::base {

/// \throws Error invalid_argument with that message, unless the condition holds.
inline void require(bool condition, const std::string& message) {
  if (!condition) throw Error(ErrorCode::invalid_argument, message);
}

}  // namespace chunkio::base
