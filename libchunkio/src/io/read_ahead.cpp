#include "io/read_ahead.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <utility>

#include "base/trace.hpp"
#include "io/page_cache.hpp"

namespace chunkio::io {
namespace {

/// Calls visit(begin, end) for the parts of [begin, end) that lie in one folio each.
template <class Visit>
void for_each_folio(std::int64_t begin, std::int64_t end, Visit visit) {
  while (begin < end) {
    const std::int64_t folio_end = (begin / kFolioBytes + 1) * kFolioBytes;
    visit(begin, std::min(folio_end, end));
    begin = folio_end;
  }
}

/// Reads the large folio that holds the byte at `offset`. \returns false if the kernel refuses.
bool read_folio(int fd, std::int64_t offset) noexcept {
  const std::int64_t folio = offset / kFolioBytes * kFolioBytes;
  void* map = ::mmap(nullptr, kFolioBytes, PROT_READ, MAP_SHARED, fd, folio);
  if (map == MAP_FAILED) return false;
  const std::byte* byte = static_cast<std::byte*>(map) + (offset - folio);
  // MADV_RANDOM: this folio, and not the next one too, which may not be wanted.
  const bool read = ::madvise(map, kFolioBytes, MADV_HUGEPAGE) == 0 &&
                    ::madvise(map, kFolioBytes, MADV_RANDOM) == 0 && map_in(byte, byte + 1) == 0;
  ::munmap(map, kFolioBytes);
  return read;
}

/// Whether bytes are known to be in the page cache or on their way. Where the kernel does not show
/// it, the answer is no: a read that asks would make it read on behind a folio.
bool are_there(const LocalFile& file, std::int64_t begin, std::int64_t end) noexcept {
  return file.shows_pages() && has_pages(file.fd(), begin, end);
}

}  // namespace

void ReadAhead::start(const File& file, std::int64_t begin, std::int64_t end) noexcept {
  if (begin >= end || are_there(*file, begin, end)) return;
  if (end - begin < kFolioBytes || !has_folios_ || !enqueue(file, begin, end)) {
    read_ahead(file->fd(), begin, end);
  }
}

void ReadAhead::fetch(const File& file, std::int64_t begin, std::int64_t end) noexcept {
  if (begin >= end || are_there(*file, begin, end)) return;
  if (end - begin < kFolioBytes) return read_ahead(file->fd(), begin, end);
  for_each_folio(begin, end, [&](std::int64_t part_begin, std::int64_t part_end) {
    read({.file = file, .begin = part_begin, .end = part_end});
  });
}

bool ReadAhead::enqueue(const File& file, std::int64_t begin, std::int64_t end) {
  try {
    const std::lock_guard lock(mutex_);
    if (!threads_.front().joinable()) {
      for (std::jthread& thread : threads_) {
        thread = std::jthread([this](const std::stop_token& stop) { serve(stop); });
      }
    }
    for_each_folio(begin, end, [&](std::int64_t part_begin, std::int64_t part_end) {
      queue_.push_back({.file = file, .begin = part_begin, .end = part_end});
    });
    // A reader that asks for more than can be served has passed the oldest requests by now.
    while (queue_.size() > kMaxRequests) queue_.pop_front();
  } catch (const std::exception&) {
    return false;
  }
  wake_.notify_all();
  return true;
}

void ReadAhead::serve(const std::stop_token& stop) {
  base::name_this_thread("chunkio ahead");
  std::unique_lock lock(mutex_);
  while (wake_.wait(lock, stop, [this] { return !queue_.empty(); }) && !stop.stop_requested()) {
    const Request request = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    read(request);
    lock.lock();
  }
}

void ReadAhead::read(const Request& request) noexcept {
  const base::TraceRange range(base::Stage::read_ahead);
  const LocalFile& file = *request.file;
  // In the middle, since single pages may be there at the ends: a header, or what in_page_cache()
  // made the kernel read.
  const std::int64_t middle = request.begin + (request.end - request.begin) / 2;
  if (has_folios_) {
    if (are_there(file, middle, middle + 1)) return;
    if (read_folio(file.fd(), middle)) {
      if (!file.shows_pages() && saw_folio_) return;
      if (has_pages(file.fd(), request.begin, request.end)) {
        saw_folio_ = true;
        return;
      }
    }
    has_folios_ = false;
  }
  if (!are_there(file, request.begin, request.end)) {
    read_ahead(file.fd(), request.begin, request.end);
  }
}

std::unique_ptr<const ByteSource> CachedFile::prefetch(
    std::span<const ByteRange> ranges) const noexcept {
  for (const ByteRange& range : ranges) {
    // Whoever reads it with system calls makes the kernel read on anyway.
    const bool asked = !file_->shows_pages() && range.begin < range.end;
    if (asked && has_pages(file_->fd(), range.begin, range.end)) continue;
    read_ahead_->start(file_, range.begin, range.end);
  }
  return nullptr;
}

}  // namespace chunkio::io
