/// Evicts a file from the page cache, or loads it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace bench {

/// Reads what of the file is not in the page cache, as mincore(2) says, and calls `check` between
/// reads, which may throw.
/// \throws chunkio::Error, std::system_error, and what `check` throws.
void read_into_page_cache(const std::string& path, const std::function<void()>& check);

/// Puts the file out of the page cache after writing back what is dirty: madvise DONTNEED for what
/// this process has mapped, then posix_fadvise DONTNEED, which takes no privileges.
/// \returns the bytes of it that stay all the same, as on a file system that lives in memory.
/// \throws chunkio::Error, std::system_error.
std::int64_t put_out_of_page_cache(const std::string& path);

/// Writes to free memory, so that `bytes` of page cache find room there, but to at most a quarter
/// of what is available. A virtual machine hands free memory back to its host, and fetching it
/// again can take longer than the disk: half a gigabyte a second was seen.
void touch_free_memory(std::int64_t bytes);

/// Memory that this process maps from now on, such as that of a loader's batches.
class NewMemory {
 public:
  NewMemory();

  /// Has the kernel fetch its pages, so that who uses them first does not pay; what they hold
  /// stays. Nothing before Linux 5.14.
  void touch() const;

 private:
  std::vector<std::pair<std::uintptr_t, std::uintptr_t>> before_;  // in order
};

/// put_out_of_page_cache() and touch_free_memory(), for the whole file.
/// \throws as put_out_of_page_cache(); std::runtime_error if more than 1 % of it stay.
void drop_from_page_cache(const std::string& path);

}  // namespace bench
