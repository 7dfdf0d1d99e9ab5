/// How large a chunk should be, how a dataset is stored, and cache settings to read it with.
///
///     const std::int64_t samples = chunkio::choose_chunk_samples(32 * 32 * 3, 50'000);
///     const auto cache = chunkio::recommend_cache(37, chunkio::kDefaultChunkBytes);  // for h5py
///
/// Pure arithmetic: no I/O, thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <chunkio/export.hpp>
#include <chunkio/tensor.hpp>

namespace chunkio {

/// Bytes of a default chunk: large enough that a disk reads it at full speed, small enough that a
/// window mixes many of them.
inline constexpr std::int64_t kDefaultChunkBytes = std::int64_t{4} << 20;
/// Bytes of a default window (see EpochOrder).
inline constexpr std::int64_t kDefaultWindowBytes = std::int64_t{256} << 20;

/// Samples in one chunk: max(1, chunk_bytes / sample_bytes), at most num_samples.
/// \throws Error invalid_argument if an argument is < 1, or one chunk would reach 4 GiB, HDF5's
///         limit.
CHUNKIO_EXPORT std::int64_t choose_chunk_samples(std::int64_t sample_bytes,
                                                 std::int64_t num_samples,
                                                 std::int64_t chunk_bytes = kDefaultChunkBytes);

/// Settings of HDF5's raw data chunk cache (`H5Pset_chunk_cache`, h5py's `rdcc_*`).
struct ChunkCacheSettings {
  std::uint64_t rdcc_nslots = 521;      ///< Hash slots; a prime.
  std::uint64_t rdcc_nbytes = 1 << 20;  ///< Bytes held at most.
  double rdcc_w0 = 0.75;                ///< 1 = evict fully read chunks first.
};

/// Cache settings for reading a dataset of `num_chunks` chunks in windows of `window_bytes`: slots
/// a prime above the number of chunks (at most 2^20), bytes one window, w0 = 1.
CHUNKIO_EXPORT ChunkCacheSettings recommend_cache(std::int64_t num_chunks, std::int64_t chunk_bytes,
                                                  std::int64_t window_bytes = kDefaultWindowBytes);

/// How a dataset is stored, as far as its cost for training goes.
struct StoredLayout {
  Shape shape = {};                       ///< [N, ...] of the dataset.
  DType dtype = DType::uint8;             ///< Element type.
  bool chunked = false;                   ///< False: one contiguous run.
  Shape chunk_shape = {};                 ///< Same rank as `shape` when chunked.
  std::vector<std::string> filters = {};  ///< Names in pipeline order, e.g. "shuffle", "deflate".
};

}  // namespace chunkio
