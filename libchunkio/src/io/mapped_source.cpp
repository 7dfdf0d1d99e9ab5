#include "io/mapped_source.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>
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
#include "base/streaming_copy.hpp"

#ifndef MADV_POPULATE_READ  // Linux 5.14; headers may be older than the kernel
#define MADV_POPULATE_READ 22
#endif

namespace chunkio::io {
namespace {

// What the kernel reads ahead by default; a longer request is cut to it silently.
constexpr std::size_t kReadaheadBytes = std::size_t{128} << 10;

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

MappedSource::MappedSource(std::shared_ptr<const Dataset::Impl> dataset)
    : dataset_(std::move(dataset)),
      sample_bytes_(static_cast<std::size_t>(dataset_->info.sample_bytes())),
      page_bytes_(static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))) {
  const auto page = static_cast<std::int64_t>(page_bytes_);
  map_offset_ = *dataset_->linear_offset / page * page;
  first_row_offset_ = static_cast<std::size_t>(*dataset_->linear_offset - map_offset_);
  map_bytes_ =
      first_row_offset_ + static_cast<std::size_t>(dataset_->info.num_samples) * sample_bytes_;
  void* map =
      ::mmap(nullptr, map_bytes_, PROT_READ, MAP_SHARED, dataset_->descriptor.get(), map_offset_);
  if (map == MAP_FAILED) {
    throw base::system_error(errno, "map", dataset_->info.path, "choose the scatter source");
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

std::int64_t MappedSource::memory_bytes(std::int64_t) const noexcept { return 0; }

bool MappedSource::resident(std::size_t offset) const {
  std::byte byte{};
  const iovec target{.iov_base = &byte, .iov_len = 1};
  // Answers EAGAIN instead of reading from the disk. Where it is unknown, say no: that costs only
  // time.
  return ::preadv2(dataset_->descriptor.get(), &target, 1,
                   map_offset_ + static_cast<std::int64_t>(offset), RWF_NOWAIT) == 1;
}

void MappedSource::populate(std::size_t begin, std::size_t end) const {
  // Two probes stand for the run: it was read as a whole, and is mostly evicted as a whole.
  if (!resident(begin) || !resident(end - 1)) {
    for (std::size_t offset = begin; offset < end; offset += kReadaheadBytes) {
      // Advice: what it does not bring in, the accesses below do.
      (void)::readahead(dataset_->descriptor.get(), map_offset_ + static_cast<std::int64_t>(offset),
                        std::min(kReadaheadBytes, end - offset));
    }
  }
  const std::size_t first_page = begin / page_bytes_ * page_bytes_;
  while (::madvise(map_ + first_page, end - first_page, MADV_POPULATE_READ) != 0) {
    if (errno == EINTR) continue;
    if (errno == EINVAL) return;  // an older kernel: the copy faults pages in one by one
    throw Error(ErrorCode::io_failed,
                "cannot read " + dataset_->info.path + " between bytes " +
                    std::to_string(map_offset_ + static_cast<std::int64_t>(begin)) + " and " +
                    std::to_string(map_offset_ + static_cast<std::int64_t>(end)) +
                    ": the file was truncated or its disk is failing");
  }
}

PlaceCost MappedSource::place(const RowGroup& group, std::span<const RowTarget> rows,
                              std::stop_token stop) const {
  PlaceCost cost;
  const std::string& path = dataset_->info.path;
  const std::byte* first =
      map_ + first_row_offset_ + static_cast<std::size_t>(group.first_row) * sample_bytes_;
  const auto offset_of = [&](std::uint32_t row) {
    return static_cast<std::size_t>(first - map_) + std::size_t{row} * sample_bytes_;
  };
  std::size_t begin = 0;
  while (begin < rows.size()) {
    if (stop.stop_requested())
      throw Error(ErrorCode::cancelled, "reading " + path + " was stopped");
    // Rows that touch the same or neighbouring pages are brought in together.
    std::size_t end = begin + 1;
    while (end < rows.size() &&
           offset_of(rows[end].row) <= offset_of(rows[end - 1].row) + sample_bytes_ + page_bytes_) {
      ++end;
    }
    const std::size_t run_begin = offset_of(rows[begin].row);
    const std::size_t run_end = offset_of(rows[end - 1].row) + sample_bytes_;
    populate(run_begin, run_end);
    for (std::size_t i = begin; i < end; ++i) {
      base::streaming_copy(rows[i].target, map_ + offset_of(rows[i].row), sample_bytes_);
    }
    cost.bytes_read += static_cast<std::int64_t>(run_end - run_begin);
    begin = end;
  }
  base::store_fence();
  if (guard_->faulted()) {
    throw Error(ErrorCode::io_failed,
                "cannot read " + path + ": the file was truncated or its disk is failing");
  }
  dataset_->check_unchanged();
  return cost;
}

std::optional<std::string> reason_not_to_map(const Dataset::Impl& dataset) {
  struct statfs file_system {};
  if (::fstatfs(dataset.descriptor.get(), &file_system) != 0) return "unknown file system";
  const auto type = static_cast<long>(file_system.f_type);
  if (std::find(kRemoteFileSystems.begin(), kRemoteFileSystems.end(), type) !=
      kRemoteFileSystems.end()) {
    return "not on a local file system";
  }
  if (dataset.info.stored_bytes > cacheable_bytes() / 2) return "larger than half of the memory";
  return std::nullopt;
}

}  // namespace chunkio::io
