#include "io/range_reader.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "base/stopwatch.hpp"
#include "base/trace.hpp"

namespace chunkio::io {
namespace {

constexpr std::int64_t kCachedPiece = std::int64_t{512} << 10;

}  // namespace

RangeReader::RangeReader(std::shared_ptr<const Dataset::Impl> file, bool direct_io)
    : RangeReader(file->descriptor.get(), file->info.path, direct_io) {
  file_ = std::move(file);
}

RangeReader::RangeReader(int fd, std::string path, bool direct_io)
    : fd_(fd), path_(std::move(path)) {
  if (direct_io) direct_ = open_direct(fd_, path_, O_RDONLY);
}

std::int64_t RangeReader::piece_bytes() const noexcept {
  return direct() ? kDirectPieceBytes : kCachedPiece;
}

std::size_t RangeReader::scratch_bytes(std::int64_t size) const noexcept {
  return static_cast<std::size_t>(direct() ? size + 2 * kDirectPage : size);
}

std::span<std::byte> RangeReader::read(std::int64_t offset, std::int64_t size,
                                       std::span<std::byte> scratch, ReadCost& cost) const {
  const base::TraceRange range(base::Stage::read);
  if (!direct()) {
    const auto bytes = scratch.first(static_cast<std::size_t>(size));
    const base::ReadTime time = base::read_at_timed(fd_, offset, bytes, path_);
    cost.bytes_read += size;
    cost.read_seconds += time.waited_seconds;
    cost.copy_seconds += time.copied_seconds;
    return bytes;
  }

  base::Stopwatch watch;
  const std::int64_t begin = block_begin(offset);
  const std::int64_t end =
      (offset + size + direct_.block_bytes - 1) / direct_.block_bytes * direct_.block_bytes;
  std::int64_t at = begin;
  while (at < offset + size) {
    const ssize_t count = ::pread(direct_.descriptor.get(), scratch.data() + (at - begin),
                                  static_cast<std::size_t>(end - at), at);
    if (count < 0 && errno == EINTR) continue;
    // An ordinary read could find the bytes in the page cache, and hide that the disk fails.
    if (count < 0 && errno == EIO) throw base::system_error(errno, "read", path_);
    if (count > 0) at += count;
    // The last block of a file may be short. Everything else that does not fit blocks, the end of
    // the file and refusals of this kind of reading included, is settled by an ordinary read.
    if (at < offset + size && (count <= 0 || at % direct_.block_bytes != 0)) {
      const auto rest = scratch.subspan(static_cast<std::size_t>(at - begin),
                                        static_cast<std::size_t>(offset + size - at));
      base::read_at(fd_, at, rest, path_);
      at = offset + size;
    }
  }
  cost.bytes_read += at - begin;
  cost.read_seconds += watch.lap();
  return scratch.subspan(static_cast<std::size_t>(offset - begin), static_cast<std::size_t>(size));
}

}  // namespace chunkio::io
