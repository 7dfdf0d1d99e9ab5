#include "io/page_cache.hpp"

#include <fcntl.h>
#include <sys/uio.h>

#include <algorithm>
#include <cstddef>

namespace chunkio::io {
namespace {

// What the kernel reads ahead by default; a longer request is cut to it silently.
constexpr std::int64_t kReadaheadBytes = std::int64_t{128} << 10;

}  // namespace

bool in_page_cache(int fd, std::int64_t offset) noexcept {
  std::byte byte{};
  const iovec target{.iov_base = &byte, .iov_len = 1};
  // Answers EAGAIN instead of reading from the disk.
  return ::preadv2(fd, &target, 1, offset, RWF_NOWAIT) == 1;
}

void read_ahead(int fd, std::int64_t begin, std::int64_t end) noexcept {
  if (begin >= end || (in_page_cache(fd, begin) && in_page_cache(fd, end - 1))) return;
  for (std::int64_t offset = begin; offset < end; offset += kReadaheadBytes) {
    (void)::readahead(fd, offset,
                      static_cast<std::size_t>(std::min(kReadaheadBytes, end - offset)));
  }
}

}  // namespace chunkio::io
