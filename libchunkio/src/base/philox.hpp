/// Philox4x32-10, and the random streams that the order of an epoch is made of.
///
/// Philox (Salmon, Moraes, Dror, Shaw: "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011) is a
/// pure function (counter, key) -> 128 bits, so any part of any stream can be had without drawing
/// what comes before it. The standard library's engines are specified but its distributions are
/// not, so bounded draws are defined here as well. libchunkio/doc/order.md is the definition;
/// nothing here may change without it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace chunkio::base {

using PhiloxBlock = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

__extension__ using Uint128 = unsigned __int128;

constexpr std::uint32_t low_word(std::uint64_t value) noexcept {
  return static_cast<std::uint32_t>(value);
}
constexpr std::uint32_t high_word(std::uint64_t value) noexcept {
  return static_cast<std::uint32_t>(value >> 32);
}

/// Ten rounds of Philox4x32.
constexpr PhiloxBlock philox4x32(PhiloxBlock counter, PhiloxKey key) noexcept {
  constexpr std::uint64_t kMultiplier0 = 0xD2511F53;
  constexpr std::uint64_t kMultiplier1 = 0xCD9E8D57;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9;
  constexpr std::uint32_t kWeyl1 = 0xBB67AE85;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = kMultiplier0 * counter[0];
    const std::uint64_t product1 = kMultiplier1 * counter[2];
    counter = {high_word(product1) ^ counter[1] ^ key[0], low_word(product1),
               high_word(product0) ^ counter[3] ^ key[1], low_word(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

/// What a stream is drawn for. Part of the published order: never renumber.
enum class StreamPurpose : std::uint32_t {
  row_groups = 1,    ///< Permutation of the row groups.
  window = 2,        ///< Permutation of the samples of one window.
  rows = 3,          ///< Permutation of all rows.
  augmentation = 4,  ///< Crops and flips of an epoch.
  echo = 5,          ///< Permutation of the rows of an echo buffer that is used again.
};

/// The key under which everything for one (seed, epoch, lane, purpose) is drawn.
constexpr PhiloxKey stream_key(std::uint64_t seed, std::uint64_t epoch, std::uint32_t lane,
                               StreamPurpose purpose) noexcept {
  const PhiloxBlock block =
      philox4x32({low_word(epoch), high_word(epoch), lane, static_cast<std::uint32_t>(purpose)},
                 {low_word(seed), high_word(seed)});
  return {block[0], block[1]};
}

/// The key under which all samples of an epoch decide how they are cut and flipped.
constexpr PhiloxKey augmentation_key(std::uint64_t seed, std::uint64_t epoch) noexcept {
  return stream_key(seed, epoch, 0, StreamPurpose::augmentation);
}

/// An endless stream of 32-bit words: the blocks philox(counter = {i, slot}, key) for i = 0, 1, ...
/// one after the other. Not thread-safe; copy it instead.
class PhiloxStream {
 public:
  PhiloxStream(PhiloxKey key, std::uint64_t slot) noexcept : key_(key), slot_(slot) {}

  std::uint32_t next32() noexcept {
    if (used_ == words_.size()) refill();
    return words_[used_++];
  }

  /// Two words, the low one first.
  std::uint64_t next64() noexcept {
    const std::uint64_t low = next32();
    return low | static_cast<std::uint64_t>(next32()) << 32;
  }

  /// Uniform in [0, n), n >= 1, without bias: Lemire, "Fast Random Integer Generation in an
  /// Interval", ACM TOMACS 29 (2019). Draws 32-bit words where n fits in one, else 64-bit ones.
  std::uint64_t below(std::uint64_t n) noexcept {
    if (n <= std::numeric_limits<std::uint32_t>::max())
      return below32(static_cast<std::uint32_t>(n));
    Uint128 product = static_cast<Uint128>(next64()) * n;
    if (static_cast<std::uint64_t>(product) < n) {
      const std::uint64_t threshold = (0 - n) % n;
      while (static_cast<std::uint64_t>(product) < threshold) {
        product = static_cast<Uint128>(next64()) * n;
      }
    }
    return static_cast<std::uint64_t>(product >> 64);
  }

 private:
  std::uint32_t below32(std::uint32_t n) noexcept {
    std::uint64_t product = static_cast<std::uint64_t>(next32()) * n;
    if (low_word(product) < n) {
      const std::uint32_t threshold = (0 - n) % n;
      while (low_word(product) < threshold) product = static_cast<std::uint64_t>(next32()) * n;
    }
    return high_word(product);
  }

  // Blocks are independent of each other, so a processor works on several at once if they are drawn
  // in a run.
  void refill() noexcept {
    for (std::size_t word = 0; word < words_.size(); word += 4) {
      const PhiloxBlock block = philox4x32(
          {low_word(next_block_), high_word(next_block_), low_word(slot_), high_word(slot_)}, key_);
      ++next_block_;
      for (std::size_t i = 0; i < 4; ++i) words_[word + i] = block[i];
    }
    used_ = 0;
  }

  PhiloxKey key_;
  std::uint64_t slot_;
  std::uint64_t next_block_ = 0;
  std::array<std::uint32_t, 64> words_{};
  std::size_t used_ = words_.size();
};

}  // namespace chunkio::base
