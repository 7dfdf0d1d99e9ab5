/// Copies that go round the cache.
///
/// A batch row is next read by a bus or another core, not by the one that writes it, so fetching
/// its cache lines before overwriting them wastes a third of the memory traffic. Non-temporal
/// stores do not.
#pragma once

#include <cstddef>

namespace chunkio::base {

/// memcpy with non-temporal stores to the aligned middle of `target`; the unaligned ends are stored
/// ordinarily. Call store_fence() before telling another thread.
void streaming_copy(std::byte* target, const std::byte* source, std::size_t size) noexcept;

/// Orders all earlier non-temporal stores of this thread before its later stores.
void store_fence() noexcept;

}  // namespace chunkio::base
