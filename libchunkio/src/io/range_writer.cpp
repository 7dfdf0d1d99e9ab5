#include "io/range_writer.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "io/direct_file.hpp"

namespace chunkio::io {
namespace {

/// Ranges below this go through the page cache: a disk takes as long for less.
constexpr std::int64_t kLeastDirect = std::int64_t{256} << 10;
constexpr auto kPieceBytes = static_cast<std::size_t>(kDirectPieceBytes);

}  // namespace

RangeWriter::RangeWriter(int fd, const std::string& path)
    : fd_(fd), path_(path), direct_(open_direct(fd, path, O_WRONLY).descriptor) {}

void RangeWriter::write(std::int64_t offset, std::span<const std::byte> bytes) {
  const std::int64_t end = offset + static_cast<std::int64_t>(bytes.size());
  const std::int64_t first_page = (offset + kDirectPage - 1) / kDirectPage * kDirectPage;
  const std::int64_t end_page = end / kDirectPage * kDirectPage;
  if (!direct() || end_page - first_page < kLeastDirect) {
    base::write_at(fd_, offset, bytes, path_);
    return;
  }
  const auto head = static_cast<std::size_t>(first_page - offset);
  const auto pages = bytes.subspan(head, static_cast<std::size_t>(end_page - first_page));
  base::write_at(fd_, offset, bytes.first(head), path_);
  const std::size_t done = head + write_pages(first_page, pages);
  base::write_at(fd_, offset + static_cast<std::int64_t>(done), bytes.subspan(done), path_);
}

/// \returns how many bytes were written; what is left goes another way.
std::size_t RangeWriter::write_pages(std::int64_t offset, std::span<const std::byte> bytes) {
  const auto scratch =
      scratch_.take([] { return std::make_unique<base::HostBuffer>(kPieceBytes); });
  std::size_t done = 0;
  while (done < bytes.size()) {
    // The memory must be aligned like the file, and a caller's hardly ever is.
    const auto piece = scratch->bytes().first(std::min(kPieceBytes, bytes.size() - done));
    std::memcpy(piece.data(), bytes.data() + done, piece.size());
    if (!write_piece(offset + static_cast<std::int64_t>(done), piece)) return done;
    done += piece.size();
  }
  return done;
}

/// \returns false if the kernel took only a part: an ordinary write goes on, or tells why.
bool RangeWriter::write_piece(std::int64_t offset, std::span<const std::byte> piece) {
  for (;;) {
    const ssize_t count = ::pwrite(direct_.get(), piece.data(), piece.size(), offset);
    if (count >= 0) return static_cast<std::size_t>(count) == piece.size();
    if (errno == EINTR) continue;
    if (errno != EINVAL) throw base::system_error(errno, "write", path_);
    refused_ = true;
    return false;
  }
}

}  // namespace chunkio::io
