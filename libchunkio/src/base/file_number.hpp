/// Numbers as files have them: little-endian.
#pragma once

#include <cstddef>
#include <span>

namespace chunkio::base {

/// The unsigned number at byte `at`. \pre it lies in `bytes`.
template <class T>
[[nodiscard]] T number_at(std::span<const std::byte> bytes, std::size_t at) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    value |= static_cast<T>(static_cast<T>(std::to_integer<T>(bytes[at + i])) << (8 * i));
  }
  return value;
}

}  // namespace chunkio::base
