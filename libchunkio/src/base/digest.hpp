/// XXH3-64: the digest of what is stored. Finds damage, is no protection against intent.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace chunkio::base {

/// XXH3-64 with seed 0. Part of the file format: never change.
[[nodiscard]] inline std::uint64_t digest(std::span<const std::byte> bytes) noexcept {
  return XXH3_64bits(bytes.data(), bytes.size());
}

/// digest() of one part of a row, continued with the next. Part of the file format: never change.
[[nodiscard]] inline std::uint64_t digest(std::span<const std::byte> first,
                                          std::span<const std::byte> next) noexcept {
  return XXH3_64bits_withSeed(next.data(), next.size(), digest(first));
}

/// Continues digests of rows, one each, with another dataset's rows: the digest so far is the seed
/// of the next. Part of the file format: never change.
/// \param rows  as many as `digests`, of equal size.
inline void chain_digests(std::span<std::uint64_t> digests,
                          std::span<const std::byte> rows) noexcept {
  if (digests.empty()) return;
  const std::size_t row_bytes = rows.size() / digests.size();
  for (std::size_t i = 0; i < digests.size(); ++i) {
    digests[i] = XXH3_64bits_withSeed(rows.data() + i * row_bytes, row_bytes, digests[i]);
  }
}

/// A digest as 16 hexadecimal digits. Part of loader states: never change.
[[nodiscard]] inline std::string digest_text(std::uint64_t digest) {
  std::string text(16, '0');
  for (std::size_t i = text.size(); i-- > 0; digest >>= 4) {
    text[i] = "0123456789abcdef"[digest & 15];
  }
  return text;
}

/// XXH3-128 of a text, as a text: where two must not have the same by chance.
[[nodiscard]] inline std::string long_digest_text(std::string_view text) {
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return digest_text(hash.high64) + digest_text(hash.low64);
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

/// digest() of each of many rows of one size, which come in pieces of any size.
class RowDigests {
 public:
  explicit RowDigests(std::int64_t row_bytes) : row_bytes_(static_cast<std::size_t>(row_bytes)) {}
  void add(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      if (begun_ == 0 && bytes.size() >= row_bytes_) {
        digests_.push_back(digest(bytes.first(row_bytes_)));
        bytes = bytes.subspan(row_bytes_);
        continue;
      }
      const auto part = bytes.first(std::min(bytes.size(), row_bytes_ - begun_));
      if (begun_ == 0) running_ = RunningDigest();
      running_.add(part);
      begun_ += part.size();
      bytes = bytes.subspan(part.size());
      if (begun_ < row_bytes_) continue;
      digests_.push_back(running_.value());
      begun_ = 0;
    }
  }
  /// Of the rows that are complete.
  [[nodiscard]] std::vector<std::uint64_t>& values() noexcept { return digests_; }
  void clear() noexcept {
    digests_.clear();
    begun_ = 0;
  }

 private:
  std::size_t row_bytes_;
  std::size_t begun_ = 0;  ///< Bytes of the row that is not complete.
  RunningDigest running_;
  std::vector<std::uint64_t> digests_;
};

}  // namespace chunkio::base
