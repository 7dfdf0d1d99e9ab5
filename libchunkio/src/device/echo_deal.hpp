/// How the rows of a big batch are dealt to batches again: libchunkio/doc/order.md, section 11.
#pragma once

#include <cstdint>
#include <span>

namespace chunkio::device {

/// What keys the order.
struct EchoKey {
  std::uint64_t seed = 0;  ///< Of the loader's order.
  std::int64_t epoch = 0;
  std::int64_t rank = 0;
  std::int64_t first_batch = 0;  ///< Of the loader, that the big batch begins with.
};

/// Fills `rows` with the rows of the big batch in the order of pass `echo_pass`: 0, 1, 2, ... in
/// pass 0, shuffled in later ones.
void deal_rows(const EchoKey& key, std::int64_t echo_pass, std::span<std::int32_t> rows);

}  // namespace chunkio::device
