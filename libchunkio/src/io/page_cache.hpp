/// What the kernel has of a file in memory, and asking it for more.
#pragma once

#include <cstdint>

namespace chunkio::io {

/// Whether the byte at `offset` is in the page cache. Where the kernel cannot tell: no.
[[nodiscard]] bool in_page_cache(int fd, std::int64_t offset) noexcept;

/// Starts reading bytes [begin, end) into the page cache and does not wait for them, unless both
/// ends are there already: what is read as a whole is mostly evicted as a whole. Advice: never
/// fails.
void read_ahead(int fd, std::int64_t begin, std::int64_t end) noexcept;

}  // namespace chunkio::io
