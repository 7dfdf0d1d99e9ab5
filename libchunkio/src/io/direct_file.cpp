#include "io/direct_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/stopwatch.hpp"

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

DirectDescriptor open_direct(int fd, const std::string& path, int access) {
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

ReadTime DirectFile::read_at(std::int64_t offset, std::span<std::byte> out,
                             const std::stop_token& stop) const {
  base::Stopwatch watch;
  const std::int64_t block = direct_.block_bytes;
  const bool aligned =
      offset % block == 0 && reinterpret_cast<std::uintptr_t>(out.data()) % kDirectPage == 0;
  // Of the block in which the file ends, only a part may be wanted.
  alignas(kDirectPage) std::array<std::byte, kDirectPage> last;
  while (aligned && !out.empty()) {
    const auto whole = static_cast<std::int64_t>(out.size()) / block * block;
    const std::span target = whole > 0 ? out.first(static_cast<std::size_t>(whole))
                                       : std::span(last).first(static_cast<std::size_t>(block));
    const ssize_t count = ::pread(direct_.descriptor.get(), target.data(), target.size(), offset);
    if (count < 0 && errno == EINTR) continue;
    // An ordinary read could find the bytes in the page cache, and hide that the disk fails.
    if (count < 0 && errno == EIO) throw base::system_error(errno, "read", name());
    const auto got = std::min(static_cast<std::size_t>(std::max<ssize_t>(count, 0)), out.size());
    if (whole == 0) std::copy_n(last.begin(), got, out.begin());
    offset += static_cast<std::int64_t>(got);
    out = out.subspan(got);
    // Everything else that does not fit blocks, the end of the file and refusals of this kind of
    // reading included, is settled by an ordinary read.
    if (got == 0 || offset % block != 0) break;
  }
  ReadTime time{.waited_seconds = watch.lap()};
  if (!out.empty()) time += file_->read_at(offset, out, stop);
  return time;
}

std::shared_ptr<const ByteSource> open_direct(const std::shared_ptr<const ByteSource>& source) {
  auto file = as_local_file(source);
  if (!file) return nullptr;
  DirectDescriptor direct = open_direct(file->fd(), file->name(), O_RDONLY);
  if (!direct.descriptor.valid()) return nullptr;
  return std::make_shared<DirectFile>(std::move(file), std::move(direct));
}

std::shared_ptr<const ByteSource> direct_if_possible(
    const std::shared_ptr<const ByteSource>& source) {
  auto direct = open_direct(source);
  return direct ? direct : source;
}

}  // namespace chunkio::io
