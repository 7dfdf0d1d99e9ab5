#include "io/mapped_source.hpp"

#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <limits>
#include <string>
#include <utility>

#include "base/positional_io.hpp"
#include "base/stopwatch.hpp"
#include "base/streaming_copy.hpp"
#include "io/page_cache.hpp"
#include "io/row_extents.hpp"

#ifndef MADV_POPULATE_READ  // Linux 5.14; headers may be older than the kernel
#define MADV_POPULATE_READ 22
#endif

namespace chunkio::io {
namespace {

// File systems whose pages can vanish or go stale under a mapping, by their magic numbers
// (statfs(2)).
constexpr std::array<long, 7> kRemoteFileSystems = {
    0x6969,      // NFS
    0x517B,      // SMB
    0xFF534D42,  // CIFS
    0xFE534D42,  // SMB2
    0x65735546,  // FUSE
    0x01021997,  // 9P
    0x0BD00BD0,  // Lustre
};

/// Bytes of memory that may hold cached pages: what the system has available, or the limit of our
/// cgroup.
std::int64_t cacheable_bytes() {
  std::int64_t bytes = std::numeric_limits<std::int64_t>::max();
  std::ifstream meminfo("/proc/meminfo");
  for (std::string key; meminfo >> key;) {
    std::int64_t kibibytes = 0;
    if (key == "MemAvailable:" && meminfo >> kibibytes) bytes = kibibytes * 1024;
    meminfo.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  for (const char* path :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::ifstream limit_file(path);
    std::int64_t limit = 0;
    if (limit_file >> limit) bytes = std::min(bytes, limit);  // "max" does not parse: no limit
  }
  return bytes;
}

}  // namespace

MappedSource::MappedSource(std::shared_ptr<const Dataset::Impl> file,
                           std::shared_ptr<const h5::StoredArray> array)
    : file_(std::move(file)),
      array_(std::move(array)),
      page_bytes_(static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))),
      map_bytes_(static_cast<std::size_t>(file_->file_bytes)) {
  void* map = ::mmap(nullptr, map_bytes_, PROT_READ, MAP_SHARED, file_->descriptor.get(), 0);
  if (map == MAP_FAILED) {
    throw base::system_error(errno, "map", file_->info.path, "choose the scatter source");
  }
  map_ = static_cast<std::byte*>(map);
  try {
    guard_.emplace(map_, map_bytes_);
  } catch (...) {
    ::munmap(map_, map_bytes_);
    throw;
  }
}

MappedSource::~MappedSource() {
  guard_.reset();
  ::munmap(map_, map_bytes_);
}

std::int64_t MappedSource::memory_bytes(std::int64_t) const noexcept {
  return array_->linear_offset ? 0 : array_->index->memory_bytes();
}

void MappedSource::will_need(const RowGroup& group) const noexcept {
  try {
    for_each_extent(
        *array_, group,
        [&](std::int64_t first, std::int64_t count, const std::optional<std::int64_t>& origin) {
          if (!origin) return;
          const std::int64_t begin = *origin + first * array_->row_bytes;
          read_ahead(file_->descriptor.get(), begin, begin + count * array_->row_bytes);
        });
  } catch (const std::exception&) {
    // place() will meet it again, and can say so.
  }
}

bool MappedSource::populate(std::size_t begin, std::size_t end) const {
  const std::size_t first_page = begin / page_bytes_ * page_bytes_;
  while (::madvise(map_ + first_page, end - first_page, MADV_POPULATE_READ) != 0) {
    if (errno == EINTR) continue;
    if (errno == EINVAL) return true;  // an older kernel: the copy faults pages in one by one
    return false;
  }
  return true;
}

PlaceCost MappedSource::place(const RowGroup& group, std::span<const RowTarget> rows,
                              std::stop_token stop) const {
  PlaceCost cost;
  const auto row_bytes = static_cast<std::size_t>(array_->row_bytes);
  bool readable = true;
  for_each_extent(*array_, group, rows,
                  [&](std::span<const RowTarget> part, const std::optional<std::int64_t>& origin) {
                    if (origin) {
                      readable = readable && place_extent(part, *origin, stop, cost);
                      return;
                    }
                    for (const RowTarget& row : part) {
                      fill_row(row.target, row_bytes, array_->fill_value);
                    }
                  });
  base::store_fence();
  if (!readable || guard_->faulted()) {
    throw Error(ErrorCode::io_failed,
                array_->describe_rows(group.first_row + rows.front().row,
                                      group.first_row + rows.back().row, file_->info.path) +
                    " cannot be read: the file was truncated or its disk is "
                    "failing");
  }
  file_->check_unchanged();
  return cost;
}

bool MappedSource::place_extent(std::span<const RowTarget> rows, std::int64_t origin,
                                const std::stop_token& stop, PlaceCost& cost) const {
  const auto row_bytes = static_cast<std::size_t>(array_->row_bytes);
  const auto offset_of = [&](std::uint32_t row) {
    return static_cast<std::size_t>(origin + std::int64_t{row} * array_->row_bytes);
  };
  base::Stopwatch watch;
  std::size_t begin = 0;
  while (begin < rows.size()) {
    if (stop.stop_requested()) {
      throw Error(ErrorCode::cancelled, "reading " + file_->info.path + " was stopped");
    }
    // Rows that touch the same or neighbouring pages are brought in together.
    std::size_t end = begin + 1;
    while (end < rows.size() &&
           offset_of(rows[end].row) <= offset_of(rows[end - 1].row) + row_bytes + page_bytes_) {
      ++end;
    }
    const std::size_t run_begin = offset_of(rows[begin].row);
    const std::size_t run_end = offset_of(rows[end - 1].row) + row_bytes;
    const int fd = file_->descriptor.get();
    const bool cached = in_page_cache(fd, static_cast<std::int64_t>(run_begin)) &&
                        in_page_cache(fd, static_cast<std::int64_t>(run_end) - 1);
    if (!cached) {
      read_ahead(fd, static_cast<std::int64_t>(run_begin), static_cast<std::int64_t>(run_end));
    }
    if (!populate(run_begin, run_end)) return false;
    if (!cached) cost.read_seconds += watch.lap();
    for (std::size_t i = begin; i < end; ++i) {
      base::streaming_copy(rows[i].target, map_ + offset_of(rows[i].row), row_bytes);
    }
    cost.copy_seconds += watch.lap();
    cost.bytes_read += static_cast<std::int64_t>(run_end - run_begin);
    begin = end;
  }
  return true;
}

std::optional<std::string> reason_not_to_map(const Dataset::Impl& file,
                                             const h5::StoredArray& array) {
  struct statfs file_system {};
  if (::fstatfs(file.descriptor.get(), &file_system) != 0) return "unknown file system";
  const auto type = static_cast<long>(file_system.f_type);
  if (std::find(kRemoteFileSystems.begin(), kRemoteFileSystems.end(), type) !=
      kRemoteFileSystems.end()) {
    return "not on a local file system";
  }
  if (array.stored_bytes > cacheable_bytes() / 2) return "larger than half of the memory";
  return std::nullopt;
}

}  // namespace chunkio::io
