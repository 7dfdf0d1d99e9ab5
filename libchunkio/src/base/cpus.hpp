/// How many threads are worth starting, and what the caches hold.
#pragma once

#include <cstdint>

namespace chunkio::base {

/// CPUs that this process may use, >= 1.
[[nodiscard]] std::int64_t usable_cpus() noexcept;

/// Threads of a loader or normalizer that was not told: as many, at most 8.
[[nodiscard]] std::int64_t default_threads() noexcept;

/// Of the largest cache of the first CPU; 0 if Linux does not say.
[[nodiscard]] std::int64_t last_level_cache_bytes();

}  // namespace chunkio::base
