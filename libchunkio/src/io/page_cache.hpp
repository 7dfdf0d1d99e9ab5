/// What the kernel has of a file in memory, how much it can have, and asking it for more or less.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace chunkio::io {

/// Whether the byte at `offset` can be read without waiting for the disk. Where the kernel cannot
/// tell: no. If not, the kernel may begin to read it, alone: ask about what was prefetched already.
[[nodiscard]] bool in_page_cache(int fd, std::int64_t offset) noexcept;

/// Whether the page of the byte at `offset` is in the page cache or on its way there. Asks
/// cachestat(2), which starts no read; an older kernel, or one that hides the cache of somebody
/// else's file, is asked by a read that does not wait but may begin.
[[nodiscard]] bool has_page(int fd, std::int64_t offset) noexcept;

/// The largest folio of the page cache: what the kernel reads and evicts in one piece.
inline constexpr std::int64_t kFolioBytes = std::int64_t{2} << 20;

/// has_page() of bytes [begin, end), \pre begin < end, as told by both ends and one byte of each
/// folio between them. The ends alone do not tell: folios that neighbouring bytes brought in hold
/// them.
[[nodiscard]] bool has_pages(int fd, std::int64_t begin, std::int64_t end) noexcept;

/// Whether the kernel tells this process which pages of a file are in memory: whoever owns it or
/// may write it. Of other files are_in_memory() is always true.
[[nodiscard]] bool shows_pages(int fd) noexcept;

/// Whether all pages of a file mapping that hold [begin, end) are in memory, mapped or not. Other
/// than in_page_cache() it never makes the kernel read: of a folio that readahead brought, the
/// first read begins to read what follows it.
[[nodiscard]] bool are_in_memory(const std::byte* begin, const std::byte* end) noexcept;

/// Whether bytes [begin, end) of a file, \pre begin < end, are mapped by this process, and so in
/// memory, also of a file of another user: as told by both ends and one byte of each folio between
/// them. Where the kernel does not tell: no. Starts no read. \param map  of the whole file.
[[nodiscard]] bool are_mapped(const std::byte* map, std::int64_t begin, std::int64_t end) noexcept;

/// Starts reading bytes [begin, end) into the page cache and does not wait for them. Advice: never
/// fails.
void read_ahead(int fd, std::int64_t begin, std::int64_t end) noexcept;

/// Drops the pages that hold bytes [begin, end) from the page cache, so that reading them asks the
/// disk. Advice: pages that are in use or not on disk yet stay, and on some file systems all do.
void drop_pages(int fd, std::int64_t begin, std::int64_t end) noexcept;

/// Waits until all pages of a file mapping that hold [begin, end) are in memory and mapped.
/// \returns 0, or an error number: EFAULT if the file does not have them or its disk fails, EINVAL
///          if the kernel is older than Linux 5.14.
[[nodiscard]] int map_in(const std::byte* begin, const std::byte* end) noexcept;

/// Bytes of memory that may hold cached pages: what the system has available, or less if a control
/// group of this process says so. The largest number there is if nothing can be found out.
/// \param proc, control_groups  where those file systems are mounted.
[[nodiscard]] std::int64_t cacheable_bytes(const std::string& proc = "/proc",
                                           const std::string& control_groups = "/sys/fs/cgroup");

}  // namespace chunkio::io
