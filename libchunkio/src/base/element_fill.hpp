/// Copies of one element, where nothing is stored.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>

namespace chunkio::base {

/// Fills `out`, whole elements, with copies of `element`. \pre `element` is not empty.
inline void fill_elements(std::span<std::byte> out, std::span<const std::byte> element) noexcept {
  const std::byte first = element.front();
  if (std::all_of(element.begin(), element.end(), [&](std::byte byte) { return byte == first; })) {
    std::memset(out.data(), std::to_integer<int>(first), out.size());
    return;
  }
  for (std::size_t at = 0; at < out.size(); at += element.size()) {
    std::memcpy(out.data() + at, element.data(), element.size());
  }
}

}  // namespace chunkio::base
