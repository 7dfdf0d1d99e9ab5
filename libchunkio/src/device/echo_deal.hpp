/// How the rows of an echo buffer are dealt to batches again: libchunkio/doc/order.md, section 11.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>

#include "base/keyed_permutation.hpp"
#include "base/philox.hpp"

namespace chunkio::device {

/// What keys the order.
struct EchoKey {
  std::uint64_t seed = 0;  ///< Of the loader's order.
  std::int64_t epoch = 0;
  std::int64_t rank = 0;
  std::int64_t first_batch = 0;  ///< Of the loader, that the echo buffer begins with.
};

/// Fills `rows` with the rows of the echo buffer in the order of pass `echo_pass`: 0, 1, 2, ... in
/// pass 0, shuffled in later ones.
inline void deal_rows(const EchoKey& key, std::int64_t echo_pass, std::span<std::int32_t> rows) {
  std::iota(rows.begin(), rows.end(), 0);
  if (echo_pass == 0) return;
  const base::PhiloxKey stream_key = base::stream_key(
      key.seed, static_cast<std::uint64_t>(key.epoch),
      base::low_word(static_cast<std::uint64_t>(key.rank)), base::StreamPurpose::echo);
  base::PhiloxStream stream(stream_key, static_cast<std::uint64_t>(key.first_batch) << 32 |
                                            static_cast<std::uint64_t>(echo_pass));
  base::fisher_yates(rows.size(), stream, [rows](std::uint64_t i, std::uint64_t j) {
    std::swap(rows[static_cast<std::size_t>(i)], rows[static_cast<std::size_t>(j)]);
  });
}

}  // namespace chunkio::device
