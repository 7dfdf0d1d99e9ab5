/// How many threads are worth starting.
#pragma once

#include <cstdint>

namespace chunkio::base {

/// CPUs that this process may use, >= 1.
[[nodiscard]] std::int64_t usable_cpus() noexcept;

/// Threads of a loader or normalizer that was not told: as many, at most 8.
[[nodiscard]] std::int64_t default_threads() noexcept;

}  // namespace chunkio::base
