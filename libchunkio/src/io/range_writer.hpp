/// Byte ranges of one file, written bypassing the page cache where the file system allows it.
///
/// What is packed is read again much later, if at all before it is out of the page cache. Through
/// the cache each byte would be copied by the kernel into a page that it must find first, which
/// takes the time of the threads that decode, and would push out what others want to keep. Whole
/// pages of a range go round it (O_DIRECT), the two ends through it, and small ranges altogether,
/// since a write of that kind waits for the disk.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/host_memory.hpp"
#include "base/positional_io.hpp"
#include "base/scratch_pool.hpp"

namespace chunkio::io {

class RangeWriter {
 public:
  /// \param fd  open for writing; must outlive this, as `path` must. \param path  for messages.
  RangeWriter(int fd, const std::string& path);

  /// Large ranges bypass the page cache.
  [[nodiscard]] bool direct() const noexcept { return direct_.valid() && !refused_; }

  /// Writes all of `bytes` at `offset`; they are on disk after a sync, not before. Blocks on I/O.
  /// Thread-safe for ranges that do not overlap. Takes up to 4 MiB of memory for each thread.
  /// \throws Error io_failed, no_space; out_of_resources.
  void write(std::int64_t offset, std::span<const std::byte> bytes);

 private:
  [[nodiscard]] std::size_t write_pages(std::int64_t offset, std::span<const std::byte> bytes);
  [[nodiscard]] bool write_piece(std::int64_t offset, std::span<const std::byte> piece);

  int fd_;
  const std::string& path_;
  base::FileDescriptor direct_;        // invalid: all goes through the page cache
  std::atomic<bool> refused_ = false;  // the file system said so only when asked to write
  base::ScratchPool<base::HostBuffer> scratch_;
};

}  // namespace chunkio::io
