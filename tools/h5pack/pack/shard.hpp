/// A shard: the part of a dataset that one of several packing runs writes.
#pragma once

#include <cstdint>
#include <string>

#include <chunkio/epoch_order.hpp>

namespace h5pack {

/// Counted from 0, as file names are: 0 <= index < count.
struct Shard {
  std::int64_t index = 0;
  std::int64_t count = 1;

  /// "3/8".
  [[nodiscard]] std::string text() const;
};

/// \param text  "3/8". \throws chunkio::Error invalid_argument, naming --shard.
[[nodiscard]] Shard parse_shard(const std::string& text);
/// The rank of this process among those of its launcher (chunkio::Ranks).
/// \throws chunkio::Error invalid_argument.
[[nodiscard]] Shard shard_from_environment();

/// The places in pack order that the shard holds. Whole chunks but for the last of all, so that the
/// shards in a row are chunked as one file would be; shards differ by one chunk at most.
/// \throws chunkio::Error invalid_argument if there are more shards than chunks.
[[nodiscard]] chunkio::RowRange shard_places(const Shard& shard, std::int64_t num_samples,
                                             std::int64_t chunk_samples);

}  // namespace h5pack
