/// XXH3-64: the digest of stored chunks. Finds damage, is no protection against intent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace chunkio::base {

/// XXH3-64 with seed 0. Part of the file format: never change.
[[nodiscard]] inline std::uint64_t digest(std::span<const std::byte> bytes) noexcept {
  return XXH3_64bits(bytes.data(), bytes.size());
}

/// A digest as 16 hexadecimal digits. Part of loader states: never change.
[[nodiscard]] inline std::string digest_text(std::uint64_t digest) {
  std::string text(16, '0');
  for (std::size_t i = text.size(); i-- > 0; digest >>= 4) {
    text[i] = "0123456789abcdef"[digest & 15];
  }
  return text;
}

/// digest() over bytes that come in pieces.
class RunningDigest {
 public:
  RunningDigest() noexcept { XXH3_64bits_reset(&state_); }
  void add(std::span<const std::byte> bytes) noexcept {
    XXH3_64bits_update(&state_, bytes.data(), bytes.size());
  }
  [[nodiscard]] std::uint64_t value() const noexcept { return XXH3_64bits_digest(&state_); }

 private:
  XXH3_state_t state_{};
};

}  // namespace chunkio::base
