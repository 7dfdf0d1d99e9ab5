#include "io/range_reader.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "base/stopwatch.hpp"

namespace chunkio::io {
namespace {

constexpr std::int64_t kCachedPiece = std::int64_t{512} << 10;
constexpr std::int64_t kDirectPiece = std::int64_t{4} << 20;
/// A multiple of every block size in use. Scratch memory is aligned to it, too.
constexpr std::int64_t kPage = 4096;

bool same_file(int a, int b) {
  struct stat left {};
  struct stat right {};
  return ::fstat(a, &left) == 0 && ::fstat(b, &right) == 0 && left.st_dev == right.st_dev &&
         left.st_ino == right.st_ino;
}

/// The file of `file` once more, for reads round the page cache; invalid if that cannot be had.
base::FileDescriptor open_direct(const Dataset::Impl& file) {
  constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_DIRECT;
  const int fd = file.descriptor.get();
  // Through /proc it is the same file even if another one has its name by now.
  base::FileDescriptor direct(::open(("/proc/self/fd/" + std::to_string(fd)).c_str(), kFlags));
  if (!direct.valid() && errno == ENOENT) {
    direct = base::FileDescriptor(::open(file.info.path.c_str(), kFlags));
  }
  if (direct.valid() && !same_file(direct.get(), fd)) return {};
  return direct;
}

/// What offsets of direct reads must be a multiple of; 0 if the file system refuses them after all.
std::int64_t direct_block(int fd) {
#ifdef STATX_DIOALIGN
  struct statx status {};
  if (::statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &status) == 0 &&
      (status.stx_mask & STATX_DIOALIGN) != 0) {
    const bool fits = status.stx_dio_mem_align <= kPage && status.stx_dio_offset_align <= kPage;
    return fits ? status.stx_dio_offset_align : 0;
  }
#else
  static_cast<void>(fd);
#endif
  return kPage;
}

}  // namespace

RangeReader::RangeReader(std::shared_ptr<const Dataset::Impl> file, bool direct_io)
    : file_(std::move(file)) {
  if (!direct_io) return;
  direct_ = open_direct(*file_);
  if (!direct_.valid()) return;
  block_bytes_ = direct_block(direct_.get());
  if (block_bytes_ == 0) direct_ = {};
}

std::int64_t RangeReader::piece_bytes() const noexcept {
  return direct() ? kDirectPiece : kCachedPiece;
}

std::size_t RangeReader::scratch_bytes(std::int64_t size) const noexcept {
  return static_cast<std::size_t>(direct() ? size + 2 * kPage : size);
}

std::span<std::byte> RangeReader::read(std::int64_t offset, std::int64_t size,
                                       std::span<std::byte> scratch, PlaceCost& cost) const {
  const std::string& path = file_->info.path;
  if (!direct()) {
    const auto bytes = scratch.first(static_cast<std::size_t>(size));
    const base::ReadTime time = base::read_at_timed(file_->descriptor.get(), offset, bytes, path);
    cost.bytes_read += size;
    cost.read_seconds += time.waited_seconds;
    cost.copy_seconds += time.copied_seconds;
    return bytes;
  }

  base::Stopwatch watch;
  const std::int64_t begin = offset / block_bytes_ * block_bytes_;
  const std::int64_t end = (offset + size + block_bytes_ - 1) / block_bytes_ * block_bytes_;
  std::int64_t at = begin;
  while (at < offset + size) {
    const ssize_t count = ::pread(direct_.get(), scratch.data() + (at - begin),
                                  static_cast<std::size_t>(end - at), at);
    if (count < 0 && errno == EINTR) continue;
    if (count > 0) at += count;
    // The last block of a file may be short. Everything else that does not fit blocks, the end of
    // the file and errors of this kind of reading included, is settled by an ordinary read.
    if (at < offset + size && (count <= 0 || at % block_bytes_ != 0)) {
      const auto rest = scratch.subspan(static_cast<std::size_t>(at - begin),
                                        static_cast<std::size_t>(offset + size - at));
      base::read_at(file_->descriptor.get(), at, rest, path);
      at = offset + size;
    }
  }
  cost.bytes_read += at - begin;
  cost.read_seconds += watch.lap();
  return scratch.subspan(static_cast<std::size_t>(offset - begin), static_cast<std::size_t>(size));
}

}  // namespace chunkio::io
