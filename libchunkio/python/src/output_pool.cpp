#include "output_pool.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace chunkio::python {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
// As many as a loop keeps coming back to: what it holds, what is being filled.
constexpr std::size_t kMaxSpare = 4;

struct Free {
  void operator()(std::byte* memory) const noexcept { std::free(memory); }
};

struct Buffer {
  std::unique_ptr<std::byte, Free> memory;
  std::size_t bytes = 0;
};

Buffer allocate(std::size_t bytes) {
  const std::size_t alignment = bytes >= kHugePage ? kHugePage : 64;
  const std::size_t rounded =
      (std::max<std::size_t>(bytes, 1) + alignment - 1) / alignment * alignment;
  Buffer buffer{std::unique_ptr<std::byte, Free>(
                    static_cast<std::byte*>(std::aligned_alloc(alignment, rounded))),
                rounded};
  if (!buffer.memory) throw std::bad_alloc();
  if (bytes >= kHugePage) ::madvise(buffer.memory.get(), rounded, MADV_HUGEPAGE);
  return buffer;
}

}  // namespace

struct OutputPool::Spare {
  std::mutex mutex;
  std::vector<Buffer> buffers;

  void put(Buffer buffer) noexcept {
    const std::lock_guard lock(mutex);
    if (buffers.size() < kMaxSpare) buffers.push_back(std::move(buffer));
  }
};

std::shared_ptr<OutputPool::Spare> OutputPool::make_spare() {
  auto spare = std::make_shared<Spare>();
  spare->buffers.reserve(kMaxSpare);
  return spare;
}

std::shared_ptr<std::byte> OutputPool::take(std::size_t bytes) {
  Buffer buffer;
  {
    const std::lock_guard lock(spare_->mutex);
    const auto found = std::find_if(spare_->buffers.begin(), spare_->buffers.end(),
                                    [&](const Buffer& spare) { return spare.bytes >= bytes; });
    if (found != spare_->buffers.end()) {
      buffer = std::move(*found);
      spare_->buffers.erase(found);
    }
  }
  if (!buffer.memory) buffer = allocate(bytes);
  std::byte* const memory = buffer.memory.get();
  const auto owned =
      std::make_shared<std::pair<std::shared_ptr<Spare>, Buffer>>(spare_, std::move(buffer));
  return {memory, [owned](std::byte*) { owned->first->put(std::move(owned->second)); }};
}

}  // namespace chunkio::python
