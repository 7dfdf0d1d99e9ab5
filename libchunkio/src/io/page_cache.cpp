#include "io/page_cache.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <limits>
#include <span>
#include <string>

#include "base/positional_io.hpp"

#ifndef MADV_POPULATE_READ  // Linux 5.14; headers may be older than the kernel
#define MADV_POPULATE_READ 22
#endif
#ifndef SYS_cachestat  // Linux 6.5; headers may be older than the kernel
#define SYS_cachestat 451
#endif

namespace chunkio::io {
namespace {

// The kernel shortens a longer request, without saying so, to the largest that the device takes at
// once or to what it reads ahead by default, which is this, whichever is more.
constexpr std::int64_t kReadaheadBytes = std::int64_t{128} << 10;

// As the kernel lays them out (linux/mman.h), which headers may not know yet.
struct CachestatRange {
  std::uint64_t offset, bytes;
};
struct Cachestat {
  std::uint64_t cached, dirty, writeback, evicted, recently_evicted;
};

/// The lowest limit of the control group `group` and those around it, in the hierarchy mounted at
/// `root`; files called `file` hold a number each, or "max".
std::int64_t lowest_limit(const std::string& root, std::string group, const char* file) {
  std::int64_t lowest = std::numeric_limits<std::int64_t>::max();
  while (true) {
    std::ifstream limit_file(root + group + "/" + file);
    std::int64_t limit = 0;
    if (limit_file >> limit) lowest = std::min(lowest, limit);
    const std::size_t slash = group.find_last_of('/');
    if (slash == std::string::npos) return lowest;
    group.erase(slash);
  }
}

/// What the control groups of this process leave it (cgroups(7)): lines "N:CONTROLLERS:/GROUP".
std::int64_t control_group_limit(const std::string& proc, const std::string& control_groups) {
  std::int64_t lowest = std::numeric_limits<std::int64_t>::max();
  std::ifstream groups(proc + "/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    std::string group = line.substr(second + 1);
    if (group == "/") group.clear();
    if (controllers.empty()) {
      lowest = std::min(lowest, lowest_limit(control_groups, group, "memory.max"));
    } else if (("," + controllers + ",").find(",memory,") != std::string::npos) {
      lowest = std::min(lowest,
                        lowest_limit(control_groups + "/memory", group, "memory.limit_in_bytes"));
    }
  }
  return lowest;
}

/// Whether `holds` is true of both ends of [begin, end) and of the start of each folio between.
template <class Holds>
bool of_each_folio(std::int64_t begin, std::int64_t end, Holds holds) {
  if (!holds(begin) || !holds(end - 1)) return false;
  for (std::int64_t at = (begin / kFolioBytes + 1) * kFolioBytes; at < end; at += kFolioBytes) {
    if (!holds(at)) return false;
  }
  return true;
}

std::size_t page_bytes() noexcept {
  static const auto bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

/// The page of a mapping that holds a byte.
std::byte* first_page(const std::byte* byte) noexcept {
  return const_cast<std::byte*>(byte - reinterpret_cast<std::uintptr_t>(byte) % page_bytes());
}

}  // namespace

std::int64_t cacheable_bytes(const std::string& proc, const std::string& control_groups) {
  std::int64_t bytes = std::numeric_limits<std::int64_t>::max();
  std::ifstream meminfo(proc + "/meminfo");
  for (std::string key; meminfo >> key;) {
    std::int64_t kibibytes = 0;
    if (key == "MemAvailable:" && meminfo >> kibibytes) bytes = kibibytes * 1024;
    meminfo.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return std::min(bytes, control_group_limit(proc, control_groups));
}

bool in_page_cache(int fd, std::int64_t offset) noexcept {
  std::byte byte{};
  const iovec target{.iov_base = &byte, .iov_len = 1};
  // Answers EAGAIN instead of reading from the disk.
  return ::preadv2(fd, &target, 1, offset, RWF_NOWAIT) == 1;
}

bool has_page(int fd, std::int64_t offset) noexcept {
  CachestatRange range{.offset = static_cast<std::uint64_t>(offset), .bytes = 1};
  Cachestat pages{};
  if (::syscall(SYS_cachestat, fd, &range, &pages, 0) != 0) return in_page_cache(fd, offset);
  return pages.cached != 0;
}

bool has_pages(int fd, std::int64_t begin, std::int64_t end) noexcept {
  return of_each_folio(begin, end, [fd](std::int64_t at) { return has_page(fd, at); });
}

void read_ahead(int fd, std::int64_t begin, std::int64_t end) noexcept {
  for (std::int64_t offset = begin; offset < end; offset += kReadaheadBytes) {
    (void)::readahead(fd, offset,
                      static_cast<std::size_t>(std::min(kReadaheadBytes, end - offset)));
  }
}

void drop_pages(int fd, std::int64_t begin, std::int64_t end) noexcept {
  if (begin >= end) return;
  const auto page = static_cast<std::int64_t>(page_bytes());
  // Of a page that the range cuts, the kernel keeps all.
  const std::int64_t first = begin / page * page;
  const std::int64_t last = (end + page - 1) / page * page;
  (void)::posix_fadvise(fd, first, last - first, POSIX_FADV_DONTNEED);
}

bool shows_pages(int fd) noexcept {
  // As can_do_mincore() of the kernel decides.
  struct stat file {};
  if (::fstat(fd, &file) == 0 && file.st_uid == ::geteuid()) return true;
  std::array<char, 32> path{};
  std::snprintf(path.data(), path.size(), "/proc/self/fd/%d", fd);
  return ::faccessat(AT_FDCWD, path.data(), W_OK, AT_EACCESS) == 0;
}

bool are_in_memory(const std::byte* begin, const std::byte* end) noexcept {
  std::array<unsigned char, 2048> pages{};  // of 8 MiB
  while (begin < end) {
    std::byte* const first = first_page(begin);
    const std::size_t count =
        std::min(pages.size(), (static_cast<std::size_t>(end - first) - 1) / page_bytes() + 1);
    if (::mincore(first, count * page_bytes(), pages.data()) != 0) return false;
    const auto known = std::span(pages).first(count);
    if (std::ranges::any_of(known, [](unsigned char page) { return page % 2 == 0; })) return false;
    begin = first + count * page_bytes();
  }
  return true;
}

bool are_mapped(const std::byte* map, std::int64_t begin, std::int64_t end) noexcept {
  // Opened each time: a descriptor that is kept across fork() would describe the parent.
  const base::FileDescriptor pagemap(::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
  return pagemap.valid() && of_each_folio(begin, end, [&](std::int64_t at) {
           // proc_pid_pagemap(5): a word for each page, whose highest bit says that it is present.
           std::uint64_t word = 0;
           const auto page = reinterpret_cast<std::uintptr_t>(map + at) / page_bytes();
           const auto place = static_cast<off_t>(page * sizeof word);
           return ::pread(pagemap.get(), &word, sizeof word, place) == sizeof word &&
                  word >> 63U != 0;
         });
}

int map_in(const std::byte* begin, const std::byte* end) noexcept {
  std::byte* const first = first_page(begin);
  while (::madvise(first, static_cast<std::size_t>(end - first), MADV_POPULATE_READ) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

}  // namespace chunkio::io
