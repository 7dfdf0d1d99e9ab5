/// Permutations of {0, ..., M - 1} that are a pure function of a key.
///
/// Small ones are a Fisher-Yates table. Large ones are a Feistel network, which takes no memory: x
/// is split into two halves of h bits (L, R) and eight rounds (L, R) -> (R, L xor F(round, R))
/// permute the 2^(2h) < 4 M numbers; a result >= M is fed in again until it is below M ("cycle
/// walking": following a cycle of a permutation from inside a set back into the set permutes that
/// set). Four rounds are visibly biased on small domains. libchunkio/doc/order.md is the
/// definition.
#pragma once

#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/philox.hpp"

namespace chunkio::base {

/// Calls swap(i, j) for the transpositions of a Fisher-Yates shuffle of n things, in order.
template <class Swap>
void fisher_yates(std::uint64_t n, PhiloxStream& stream, Swap swap) {
  for (std::uint64_t i = n; i-- > 1;) swap(i, stream.below(i + 1));
}

/// Immutable after construction; safe to share between threads.
class KeyedPermutation {
 public:
  /// Sizes up to this one are tables. Part of the published order.
  static constexpr std::uint64_t kMaxTableSize = 65536;

  /// \param size            M, 1 <= M < 2^63.
  /// \param max_table_size  for tests of the Feistel network on small domains; at most 2^32.
  /// O(M) for a table, else O(1).
  KeyedPermutation(std::uint64_t size, PhiloxKey key, StreamPurpose purpose,
                   std::uint64_t max_table_size = kMaxTableSize)
      : size_(size), key_(key), purpose_(purpose) {
    if (size <= max_table_size) {
      forward_.resize(size);
      for (std::uint64_t x = 0; x < size; ++x) forward_[x] = static_cast<std::uint32_t>(x);
      PhiloxStream stream(key, 0);
      fisher_yates(size, stream, [this](std::uint64_t i, std::uint64_t j) {
        std::swap(forward_[i], forward_[j]);
      });
      backward_.resize(size);
      for (std::uint64_t x = 0; x < size; ++x)
        backward_[forward_[x]] = static_cast<std::uint32_t>(x);
    } else {
      half_bits_ = static_cast<int>(std::bit_width(size - 1) + 1) / 2;
      half_mask_ = (std::uint64_t{1} << half_bits_) - 1;
    }
  }

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  /// Bytes of the tables.
  [[nodiscard]] std::int64_t memory_bytes() const noexcept {
    return static_cast<std::int64_t>((forward_.capacity() + backward_.capacity()) *
                                     sizeof(std::uint32_t));
  }

  /// The image of x. \pre x < size().
  [[nodiscard]] std::uint64_t operator()(std::uint64_t x) const noexcept {
    if (!forward_.empty()) return forward_[x];
    do {
      x = encrypt(x);
    } while (x >= size_);
    return x;
  }

  /// The x whose image is y. \pre y < size().
  [[nodiscard]] std::uint64_t inverse(std::uint64_t y) const noexcept {
    if (!backward_.empty()) return backward_[y];
    do {
      y = decrypt(y);
    } while (y >= size_);
    return y;
  }

 private:
  static constexpr std::uint32_t kRounds = 8;

  // h <= 32 since M < 2^63, so one word of a block fills a half.
  [[nodiscard]] std::uint64_t round_function(std::uint32_t round,
                                             std::uint64_t half) const noexcept {
    const PhiloxBlock block = philox4x32(
        {low_word(half), high_word(half), round, static_cast<std::uint32_t>(purpose_)}, key_);
    return block[0] & half_mask_;
  }

  [[nodiscard]] std::uint64_t encrypt(std::uint64_t x) const noexcept {
    std::uint64_t left = x >> half_bits_;
    std::uint64_t right = x & half_mask_;
    for (std::uint32_t round = 0; round < kRounds; ++round) {
      left = std::exchange(right, left ^ round_function(round, right));
    }
    return left << half_bits_ | right;
  }

  [[nodiscard]] std::uint64_t decrypt(std::uint64_t y) const noexcept {
    std::uint64_t left = y >> half_bits_;
    std::uint64_t right = y & half_mask_;
    for (std::uint32_t round = kRounds; round-- > 0;) {
      right = std::exchange(left, right ^ round_function(round, left));
    }
    return left << half_bits_ | right;
  }

  std::uint64_t size_;
  PhiloxKey key_;
  StreamPurpose purpose_;
  int half_bits_ = 0;
  std::uint64_t half_mask_ = 0;
  std::vector<std::uint32_t> forward_;   // empty for a Feistel network
  std::vector<std::uint32_t> backward_;  // inverse of forward_
};

}  // namespace chunkio::base
