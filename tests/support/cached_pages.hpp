/// What of a file lies in the page cache, without bringing more of it there.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include <gtest/gtest.h>

namespace chunkio::test {

/// Which pages of the first `size` bytes of a file lie in the page cache.
inline std::vector<bool> cached_pages(int fd, std::size_t size) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* map = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
  EXPECT_NE(map, MAP_FAILED);
  std::vector<unsigned char> resident((size + page - 1) / page);
  EXPECT_EQ(::mincore(map, size, resident.data()), 0);
  ::munmap(map, size);
  std::vector<bool> cached(resident.size());
  std::transform(resident.begin(), resident.end(), cached.begin(),
                 [](unsigned char r) { return r % 2 == 1; });
  return cached;
}

/// Bytes of the first `size` bytes of a file that lie in the page cache, in whole pages.
inline std::size_t cached_bytes(int fd, std::size_t size) {
  const std::vector<bool> cached = cached_pages(fd, size);
  return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) *
         static_cast<std::size_t>(std::count(cached.begin(), cached.end(), true));
}

/// Some file systems keep their pages all the same.
inline void drop_from_cache(int fd) {
  ::fdatasync(fd);
  ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
}

}  // namespace chunkio::test
