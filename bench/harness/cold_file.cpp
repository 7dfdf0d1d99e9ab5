#include "harness/cold_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <span>
#include <sstream>
#include <stdexcept>
#include <system_error>

#include <chunkio/tuning.hpp>

#include "base/host_memory.hpp"
#include "base/positional_io.hpp"

namespace bench {
namespace {

using chunkio::base::FileDescriptor;
using chunkio::base::HostBuffer;

[[noreturn]] void fail(int error, const std::string& path) {
  throw std::system_error(error, std::generic_category(), path);
}

/// Calls use(begin, end, rest) for each mapping of this process; `rest` is what the kernel says of
/// it from its permissions on.
template <class Use>
void for_each_mapping(Use use) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    char dash = 0;
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    std::istringstream fields(line);
    fields >> std::hex >> begin >> dash >> end >> std::ws;
    std::string rest;
    std::getline(fields, rest);
    use(begin, end, rest);
  }
}

/// Takes the file's pages out of the mappings that this process has of it, which would keep them.
/// They are mapped again when they are next touched.
void unmap_pages(const std::string& path) {
  const std::string canonical = std::filesystem::canonical(path);
  for_each_mapping([&](std::uintptr_t begin, std::uintptr_t end, const std::string& rest) {
    if (!rest.ends_with(" " + canonical)) return;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): that is how the kernel names them
    if (::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED) != 0) {
      fail(errno, path);
    }
  });
}

std::int64_t page_bytes() { return ::sysconf(_SC_PAGESIZE); }

/// Whether each page of the file is in the page cache.
std::vector<bool> pages_in_cache(int file, const std::string& path) {
  const std::size_t bytes = std::filesystem::file_size(path);
  if (bytes == 0) return {};
  void* map = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0);
  if (map == MAP_FAILED) fail(errno, path);
  const auto page = static_cast<std::size_t>(page_bytes());
  std::vector<unsigned char> flags((bytes + page - 1) / page);
  const int error = ::mincore(map, bytes, flags.data()) == 0 ? 0 : errno;
  ::munmap(map, bytes);
  if (error != 0) fail(error, path);
  std::vector<bool> cached(flags.size());
  std::transform(flags.begin(), flags.end(), cached.begin(),
                 [](unsigned char flag) { return flag % 2 == 1; });
  return cached;
}

}  // namespace

void read_into_page_cache(const std::string& path, const std::function<void()>& check) {
  constexpr std::int64_t kReadBytes = std::int64_t{4} << 20;
  const FileDescriptor file = FileDescriptor::open_for_reading(path);
  const auto bytes = static_cast<std::int64_t>(std::filesystem::file_size(path));
  const std::vector<bool> cached = pages_in_cache(file.get(), path);
  std::vector<std::byte> buffer(static_cast<std::size_t>(std::min(kReadBytes, bytes)));
  for (std::size_t page = 0; page < cached.size();) {
    if (cached[page]) {
      ++page;
      continue;
    }
    const std::int64_t at = static_cast<std::int64_t>(page) * page_bytes();
    std::int64_t size = 0;
    for (; page < cached.size() && !cached[page] && size < kReadBytes; ++page) size += page_bytes();
    check();
    const auto part = static_cast<std::size_t>(std::min(size, bytes - at));
    chunkio::base::read_at(file.get(), at, std::span(buffer).first(part), path);
  }
}

std::int64_t put_out_of_page_cache(const std::string& path) {
  const FileDescriptor file = FileDescriptor::open_for_reading(path);
  if (::fdatasync(file.get()) != 0) fail(errno, path);
  unmap_pages(path);
  const int error = ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
  if (error != 0) fail(error, path);
  const std::vector<bool> cached = pages_in_cache(file.get(), path);
  return std::count(cached.begin(), cached.end(), true) * page_bytes();
}

void touch_free_memory(std::int64_t bytes) {
  constexpr std::size_t kPage = 4096;
  // The kernel does not use again first what it was given back last: of a virtual machine whose
  // host takes free pages back within seconds, three times the bytes brought most of them back.
  // More than a quarter would put out of the page cache what belongs there.
  const std::int64_t enough = std::min(3 * bytes, chunkio::available_memory() / 4);
  const HostBuffer memory(static_cast<std::size_t>(enough));
  for (std::size_t i = 0; i < memory.size(); i += kPage) memory.data()[i] = std::byte{1};
}

NewMemory::NewMemory() {
  for_each_mapping([&](std::uintptr_t begin, std::uintptr_t end, const std::string&) {
    before_.emplace_back(begin, end);
  });
}

void NewMemory::touch() const {
  const auto populate = [](std::uintptr_t begin, std::uintptr_t end) {
    if (begin >= end) return;
    // Before Linux 5.14 it is touched when it is first used.
    // NOLINTNEXTLINE(performance-no-int-to-ptr): that is how the kernel names them
    static_cast<void>(::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_POPULATE_WRITE));
  };
  for_each_mapping([&](std::uintptr_t begin, std::uintptr_t end, const std::string& rest) {
    const bool has_name = rest.find_first_of("/[") != std::string::npos;
    if (has_name || !rest.starts_with("rw-p")) return;
    // The kernel may have joined it to an older one, or cut an older one in two.
    for (const auto& [old_begin, old_end] : before_) {
      if (old_end <= begin) continue;
      if (old_begin >= end) break;
      populate(begin, old_begin);
      begin = std::min(old_end, end);
    }
    populate(begin, end);
  });
}

void drop_from_page_cache(const std::string& path) {
  const auto bytes = static_cast<std::int64_t>(std::filesystem::file_size(path));
  const std::int64_t cached = put_out_of_page_cache(path);
  if (cached > bytes / 100) {
    throw std::runtime_error(path + ": " + std::to_string(100 * cached / bytes) +
                             " % of it stay in the page cache");
  }
  touch_free_memory(bytes);
}

}  // namespace bench
