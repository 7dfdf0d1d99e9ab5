#include "io/direct_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

namespace chunkio::io {
namespace {

bool same_file(int a, int b) {
  struct stat left {};
  struct stat right {};
  return ::fstat(a, &left) == 0 && ::fstat(b, &right) == 0 && left.st_dev == right.st_dev &&
         left.st_ino == right.st_ino;
}

/// What offsets of direct reads must be a multiple of; 0 if the file system refuses them after all.
std::int64_t block_of(int fd) {
#ifdef STATX_DIOALIGN
  struct statx status {};
  if (::statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &status) == 0 &&
      (status.stx_mask & STATX_DIOALIGN) != 0) {
    const bool fits =
        status.stx_dio_mem_align <= kDirectPage && status.stx_dio_offset_align <= kDirectPage;
    return fits ? status.stx_dio_offset_align : 0;
  }
#else
  static_cast<void>(fd);
#endif
  return kDirectPage;
}

}  // namespace

DirectFile open_direct(int fd, const std::string& path, int access) {
  const int flags = access | O_CLOEXEC | O_NONBLOCK | O_DIRECT;
  // Through /proc it is the same file even if another one has its name by now.
  base::FileDescriptor direct(::open(("/proc/self/fd/" + std::to_string(fd)).c_str(), flags));
  if (!direct.valid() && errno == ENOENT) {
    direct = base::FileDescriptor(::open(path.c_str(), flags));
  }
  if (!direct.valid() || !same_file(direct.get(), fd)) return {};
  const std::int64_t block_bytes = block_of(direct.get());
  if (block_bytes == 0) return {};
  return {std::move(direct), block_bytes};
}

}  // namespace chunkio::io
