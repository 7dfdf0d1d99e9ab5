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
  mapping_size_ = footprint(size) + (huge ? kHugePage : 0);
  mapping_ = ::mmap(nullptr, mapping_size_, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping_ == MAP_FAILED) {
    const int error_number = errno;
    mapping_ = nullptr;
    throw Error(ErrorCode::out_of_resources,
                "cannot reserve " + std::to_string(mapping_size_) +
                    " bytes of memory: " + std::strerror(error_number));
  }
  auto address = reinterpret_cast<std::uintptr_t>(mapping_);
  if (huge) {
    address = round_up(address, kHugePage);
    // Advice only: without transparent huge pages the buffer is merely slower.
    ::madvise(reinterpret_cast<void*>(address), footprint(size), MADV_HUGEPAGE);
  }
  data_ = reinterpret_cast<std::byte*>(address);
}

HostBuffer::HostBuffer(HostBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      mapping_(std::exchange(other.mapping_, nullptr)),
      mapping_size_(std::exchange(other.mapping_size_, 0)) {}

HostBuffer& HostBuffer::operator=(HostBuffer&& other) noexcept {
  HostBuffer moved(std::move(other));
  std::swap(data_, moved.data_);
  std::swap(size_, moved.size_);
  std::swap(mapping_, moved.mapping_);
  std::swap(mapping_size_, moved.mapping_size_);
  return *this;
}

HostBuffer::~HostBuffer() {
  if (mapping_ != nullptr) ::munmap(mapping_, mapping_size_);
}

}  // namespace chunkio::base
