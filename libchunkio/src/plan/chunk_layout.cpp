#include <algorithm>
#include <limits>
#include <string>

#include <chunkio/chunk_layout.hpp>
#include <chunkio/error.hpp>

#include "base/checked_math.hpp"

namespace chunkio {
namespace {

constexpr std::int64_t kMaxChunkBytes = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint64_t kMaxCacheSlots = std::uint64_t{1} << 20;

bool is_prime(std::uint64_t n) {
  if (n < 4) return n >= 2;
  if (n % 2 == 0) return false;
  for (std::uint64_t divisor = 3; divisor * divisor <= n; divisor += 2) {
    if (n % divisor == 0) return false;
  }
  return true;
}

}  // namespace

std::int64_t choose_chunk_samples(std::int64_t sample_bytes, std::int64_t num_samples,
                                  std::int64_t chunk_bytes) {
  if (sample_bytes < 1 || num_samples < 1 || chunk_bytes < 1) {
    throw Error(ErrorCode::invalid_argument,
                "a chunk layout needs at least 1 byte a sample, 1 sample and 1 byte a chunk; got " +
                    std::to_string(sample_bytes) + ", " + std::to_string(num_samples) + " and " +
                    std::to_string(chunk_bytes));
  }
  const std::int64_t samples =
      std::min(std::max(std::int64_t{1}, chunk_bytes / sample_bytes), num_samples);
  // No overflow: either one sample, or at most chunk_bytes.
  if (samples * sample_bytes > kMaxChunkBytes) {
    throw Error(ErrorCode::invalid_argument,
                samples == 1
                    ? "one sample of " + std::to_string(sample_bytes) +
                          " bytes does not fit in a chunk, which HDF5 limits to less than 4 GiB: "
                          "resize or crop the images"
                    : "a chunk of " + std::to_string(samples) + " samples of " +
                          std::to_string(sample_bytes) +
                          " bytes exceeds what HDF5 allows (less than 4 GiB): use at most " +
                          std::to_string(kMaxChunkBytes) + " bytes a chunk");
  }
  return samples;
}

ChunkCacheSettings recommend_cache(std::int64_t num_chunks, std::int64_t chunk_bytes,
                                   std::int64_t window_bytes) {
  if (num_chunks < 0 || chunk_bytes < 0 || window_bytes < 0) {
    throw Error(ErrorCode::invalid_argument, "cache settings need counts of 0 or more");
  }
  ChunkCacheSettings settings;
  const auto chunks = static_cast<std::uint64_t>(num_chunks);
  if (chunks >= settings.rdcc_nslots) {
    std::uint64_t slots = std::min(chunks + 1, kMaxCacheSlots);
    while (slots <= kMaxCacheSlots && !is_prime(slots)) ++slots;
    if (slots > kMaxCacheSlots) {
      slots = kMaxCacheSlots;
      while (!is_prime(slots)) --slots;
    }
    settings.rdcc_nslots = slots;
  }
  settings.rdcc_nbytes = static_cast<std::uint64_t>(std::max(window_bytes, chunk_bytes));
  settings.rdcc_w0 = 1.0;
  return settings;
}

}  // namespace chunkio
