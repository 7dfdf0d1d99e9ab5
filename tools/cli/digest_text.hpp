/// Digests as hexadecimal text.
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <string>

namespace cli {

/// 16 hexadecimal digits. In JSON, too: its numbers are doubles to many readers.
[[nodiscard]] inline std::string hex(std::uint64_t value) {
  std::array<char, 17> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%016llx", static_cast<unsigned long long>(value));
  return buffer.data();
}

}  // namespace cli
