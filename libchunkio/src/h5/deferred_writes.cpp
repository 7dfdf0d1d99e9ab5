#include "h5/deferred_writes.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/digest.hpp"
#include "base/positional_io.hpp"

namespace chunkio::h5 {

unsigned long DeferredWrites::features() const noexcept {
  // As libhdf5's own driver, so that the file is laid out alike; but no sieve buffer, which would
  // read back raw data whose writing may have failed.
  return H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA |
         H5FD_FEAT_AGGREGATE_SMALLDATA;
}

void DeferredWrites::check() const {
  if (failure_) std::rethrow_exception(failure_);
}

void DeferredWrites::apply() {
  check();
  for (const Piece& piece : metadata_) base::write_at(fd_, piece.offset, piece.bytes, path_);
  base::resize_file(fd_, file_bytes_, path_);
}

std::vector<DigestedBytes> DeferredWrites::applied() {
  std::vector<DigestedBytes> result;
  std::vector<std::byte> bytes;
  for (const Piece& piece : metadata_) {
    bytes.resize(piece.bytes.size());
    // With what later pieces cover of it.
    if (!read(H5FD_MEM_DEFAULT, piece.offset, bytes)) check();
    result.push_back({{piece.offset, std::ssize(bytes)}, base::digest(bytes)});
  }
  return result;
}

std::int64_t DeferredWrites::size() const {
  struct stat status {};
  if (::fstat(fd_, &status) != 0) throw base::system_error(errno, "inspect", path_);
  return status.st_size;
}

std::optional<std::int64_t> DeferredWrites::bytes() noexcept try { return size(); } catch (...) {
  if (!failure_) failure_ = std::current_exception();
  return std::nullopt;
}

bool DeferredWrites::read(H5FD_mem_t /*type*/, std::int64_t offset,
                          std::span<std::byte> out) noexcept {
  try {
    const std::int64_t there =
        std::clamp<std::int64_t>(size() - offset, 0, static_cast<std::int64_t>(out.size()));
    base::read_at(fd_, offset, out.first(static_cast<std::size_t>(there)), path_);
    std::fill(out.begin() + there, out.end(), std::byte{});
  } catch (...) {
    if (!failure_) failure_ = std::current_exception();
    return false;
  }
  const std::int64_t end = offset + static_cast<std::int64_t>(out.size());
  for (const Piece& piece : metadata_) {
    const std::int64_t piece_end = piece.offset + static_cast<std::int64_t>(piece.bytes.size());
    const std::int64_t first = std::max(offset, piece.offset);
    const std::int64_t last = std::min(end, piece_end);
    if (first >= last) continue;
    std::memcpy(out.data() + (first - offset), piece.bytes.data() + (first - piece.offset),
                static_cast<std::size_t>(last - first));
  }
  return true;
}

void DeferredWrites::check_kept(std::int64_t offset, std::size_t size) const {
  if (offset >= kept_.end || offset + static_cast<std::int64_t>(size) <= kept_.begin) return;
  throw Error(ErrorCode::hdf5_failed, "libhdf5 would overwrite images of " + path_ +
                                          " while it adds attributes; use another version of it");
}

bool DeferredWrites::write(H5FD_mem_t type, std::int64_t offset,
                           std::span<const std::byte> bytes) noexcept {
  const bool raw = type == H5FD_MEM_DRAW;
  if (raw && failure_) return true;
  try {
    check_kept(offset, bytes.size());
    if (raw) {
      base::write_at(fd_, offset, bytes, path_);
    } else {
      metadata_.push_back({offset, {bytes.begin(), bytes.end()}});
    }
  } catch (...) {
    if (!failure_) failure_ = std::current_exception();
  }
  return true;  // apply() throws what happened
}

}  // namespace chunkio::h5
