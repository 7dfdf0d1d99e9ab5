/// Names that no other file has.
#pragma once

#include <sys/random.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <string>

#include "base/positional_io.hpp"

namespace chunkio::base {

/// A random UUID (version 4), such as 0f8fad5b-d9cb-469f-a165-70867728950e.
/// \throws Error io_failed.
[[nodiscard]] inline std::string random_uuid() {
  std::array<unsigned char, 16> bytes{};
  while (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    if (errno != EINTR) throw system_error(errno, "read", "the system's random numbers");
  }
  bytes[6] = static_cast<unsigned char>((bytes[6] & 0x0fU) | 0x40U);  // version 4: random
  bytes[8] = static_cast<unsigned char>((bytes[8] & 0x3fU) | 0x80U);  // the variant of RFC 4122
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += "0123456789abcdef"[bytes[i] >> 4];
    text += "0123456789abcdef"[bytes[i] & 15];
  }
  return text;
}

}  // namespace chunkio::base
