/// Copies that bypass the cache, or go through it.
///
/// A batch row is next read by a bus or another core, not by the one that writes it, so fetching
/// its cache lines before overwriting them wastes a third of the memory traffic. Non-temporal
/// stores do not.
#pragma once

#include <cstddef>
#include <cstdint>

namespace chunkio::base {

/// How bytes get to memory. Which is faster depends on the processor: on some an ordinary copy of a
/// few KiB does not fetch what it overwrites either (decision 006).
enum class Stores : std::uint8_t {
  cached,     ///< Ordinary stores.
  streaming,  ///< Round the cache: call store_fence() before telling another thread.
};

/// memcpy with non-temporal stores to the aligned middle of `target`; the unaligned ends are stored
/// ordinarily. Call store_fence() before telling another thread.
void streaming_copy(std::byte* target, const std::byte* source, std::size_t size) noexcept;

/// memcpy with such stores.
void copy(std::byte* target, const std::byte* source, std::size_t size, Stores stores) noexcept;

/// Orders all earlier non-temporal stores of this thread before its later stores.
void store_fence() noexcept;

}  // namespace chunkio::base
