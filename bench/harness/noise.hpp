/// Numbers that look random and are the same everywhere, and noise made of them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace bench {

/// The bijection of SplitMix64: neighbouring numbers come out unlike each other.
inline std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

/// The generator of SplitMix64: a stream of unlike numbers from any state, neighbouring ones, too.
class SplitMix64 {
 public:
  explicit SplitMix64(std::uint64_t state) : state_(state) {}
  std::uint64_t operator()() { return mix(state_ += 0x9E3779B97F4A7C15u); }

 private:
  std::uint64_t state_;
};

/// Noise, so that no byte can be mistaken for another. Part `part` of an endless stream.
inline void fill_with_noise(std::span<std::byte> bytes, std::uint64_t part = 0) {
  SplitMix64 next(mix(part + 1));
  for (std::size_t i = 0; i < bytes.size(); i += sizeof(std::uint64_t)) {
    const std::uint64_t word = next();
    std::memcpy(bytes.data() + i, &word, std::min(sizeof(word), bytes.size() - i));
  }
}

}  // namespace bench
