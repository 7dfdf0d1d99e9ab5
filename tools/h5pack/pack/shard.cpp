#include "h5pack/pack/shard.hpp"

#include <algorithm>
#include <optional>
#include <string_view>

#include <chunkio/dataset.hpp>
#include <chunkio/epoch_order.hpp>
#include <chunkio/error.hpp>

#include "cli/parse_number.hpp"
#include "cli/quote.hpp"

namespace h5pack {
namespace {

using chunkio::Error;
using chunkio::ErrorCode;

bool is_possible(const Shard& shard) {
  return shard.count >= 1 && shard.count <= chunkio::kMaxShards && shard.index >= 0 &&
         shard.index < shard.count;
}

}  // namespace

std::string Shard::text() const { return std::to_string(index) + "/" + std::to_string(count); }

Shard parse_shard(const std::string& text) {
  const std::size_t slash = std::min(text.find('/'), text.size());
  const auto index = cli::parse_number<std::int64_t>(std::string_view(text).substr(0, slash));
  const auto count =
      slash == text.size()
          ? std::nullopt
          : cli::parse_number<std::int64_t>(std::string_view(text).substr(slash + 1));
  if (index && count && is_possible({*index, *count})) return {*index, *count};
  throw Error(ErrorCode::invalid_argument,
              "--shard must be I/N, N from 1 to " + std::to_string(chunkio::kMaxShards) +
                  " and I from 0 to N - 1, such as 0/8 to 7/8, not " + cli::quote(text));
}

Shard shard_from_environment() {
  const chunkio::Ranks ranks = chunkio::Ranks::from_environment();
  const Shard shard{ranks.rank, ranks.world_size};
  if (is_possible(shard)) return shard;
  throw Error(ErrorCode::invalid_argument, "--shard-from-env: " + std::to_string(shard.count) +
                                               " processes are too many; use at most " +
                                               std::to_string(chunkio::kMaxShards));
}

chunkio::RowRange shard_places(const Shard& shard, std::int64_t num_samples,
                               std::int64_t chunk_samples) {
  const std::int64_t num_chunks = (num_samples + chunk_samples - 1) / chunk_samples;
  if (shard.count > num_chunks) {
    throw Error(ErrorCode::invalid_argument,
                std::to_string(num_samples) + " images make " + std::to_string(num_chunks) +
                    " chunks of " + std::to_string(chunk_samples) + ", too few for " +
                    std::to_string(shard.count) + " shards; use at most " +
                    std::to_string(num_chunks) +
                    " shards, or smaller chunks (--chunk, --chunk-bytes)");
  }
  // No product overflows: counts of chunks are below 2^40, of shards below 2^13.
  const auto first_place = [&](std::int64_t index) {
    return std::min(num_chunks * index / shard.count * chunk_samples, num_samples);
  };
  return {first_place(shard.index), first_place(shard.index + 1)};
}

}  // namespace h5pack
