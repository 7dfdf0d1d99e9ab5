/// A Normalizer that believes in a cache of another size: for tests, which cannot choose their
/// machine.
#pragma once

#include <cstdint>

#include <chunkio/normalizer.hpp>

namespace chunkio::internal {

struct NormalizerAccess {
  /// \param largest_cached_bytes  output bytes up to which a batch stays in the cache.
  [[nodiscard]] static Normalizer make(const DatasetInfo& info, NormalizeOptions options,
                                       std::int64_t largest_cached_bytes);
};

}  // namespace chunkio::internal
