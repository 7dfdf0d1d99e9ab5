#include "base/host_memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include <chunkio/error.hpp>

namespace chunkio::base {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

std::size_t round_up(std::size_t value, std::size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

std::size_t page_size() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

}  // namespace

std::size_t HostBuffer::footprint(std::size_t size) noexcept {
  return size >= kHugePage ? round_up(size, kHugePage) : round_up(size, page_size());
}

HostBuffer::HostBuffer(std::size_t size) : size_(size) {
  if (size == 0) return;
  const bool huge = size >= kHugePage;
  // One huge page more of address space (not of memory) makes room for alignment.
  const std::size_t wanted = footprint(size);
  const std::size_t mapped = wanted + (huge ? kHugePage : 0);
  void* const mapping = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) {
    throw Error(ErrorCode::out_of_resources, "cannot reserve " + std::to_string(mapped) +
                                                 " bytes of memory: " + std::strerror(errno) +
                                                 "; ask for less, or raise the process limit");
  }
  data_ = static_cast<std::byte*>(mapping);
  if (huge) {
    const auto begin = reinterpret_cast<std::uintptr_t>(mapping);
    const std::size_t before = round_up(begin, kHugePage) - begin;
    data_ += before;
    // The rest is given back, so that what is mapped is what is counted.
    if (before > 0) ::munmap(mapping, before);
    if (before < kHugePage) ::munmap(data_ + wanted, kHugePage - before);
    // Advice only: without transparent huge pages the buffer is merely slower.
    ::madvise(data_, wanted, MADV_HUGEPAGE);
  }
}

HostBuffer::HostBuffer(HostBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

HostBuffer& HostBuffer::operator=(HostBuffer&& other) noexcept {
  HostBuffer moved(std::move(other));
  std::swap(data_, moved.data_);
  std::swap(size_, moved.size_);
  return *this;
}

HostBuffer::~HostBuffer() {
  if (data_ != nullptr) ::munmap(data_, footprint(size_));
}

}  // namespace chunkio::base
