/// Host memory that is copied from: the batch buffers of a loader, and buffers of our own.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <chunkio/cuda/device_loader.hpp>
#include <chunkio/error.hpp>

#include "device/gpu.hpp"
#include "read/loader_parts.hpp"
#include "read/ring.hpp"

namespace chunkio::device {

/// What `lock` makes; its null if `policy` is off, or prefer and the system refuses.
/// \throws Error out_of_resources: it refuses, and `policy` is require; cuda_failed.
template <class Lock>
[[nodiscard]] auto page_locked(cuda::PinMemory policy, Lock lock) -> decltype(lock()) {
  if (policy == cuda::PinMemory::off) return {};
  try {
    return lock();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::out_of_resources) throw;
    if (policy == cuda::PinMemory::prefer) return {};
    throw Error(error.code(),
                std::string(error.what()) +
                    "; lower the loader's memory, raise the limit of locked memory (ulimit -l), "
                    "or set pin_memory to prefer");
  }
}

/// Memory that copies to the device start from.
class CopySource {
 public:
  CopySource() = default;
  /// \throws Error as page_locked().
  CopySource(const std::shared_ptr<Gpu>& gpu, std::size_t bytes, cuda::PinMemory policy)
      : locked_(page_locked(policy, [&] { return PinnedBuffer(gpu, bytes); })) {
    if (!locked()) ordinary_.resize(bytes);
  }

  [[nodiscard]] std::byte* get() noexcept { return locked() ? locked_.get() : ordinary_.data(); }
  /// If not, a copy waits for all work of its stream, and its caller with it.
  [[nodiscard]] bool locked() const noexcept { return locked_.get() != nullptr; }

 private:
  PinnedBuffer locked_;
  std::vector<std::byte> ordinary_;
};

/// Locks on construction, unlocks on destruction. Batches of the loader may live longer.
class PinnedRing {
 public:
  /// \return null if it is not to be locked. \throws Error as page_locked().
  [[nodiscard]] static std::unique_ptr<PinnedRing> of(const std::shared_ptr<Gpu>& gpu,
                                                      const Loader& loader,
                                                      cuda::PinMemory policy) {
    return page_locked(policy,
                       [&] { return std::make_unique<PinnedRing>(gpu, read::ring_of(loader)); });
  }

  PinnedRing(std::shared_ptr<Gpu> gpu, std::shared_ptr<read::Ring> ring)
      : gpu_(std::move(gpu)), ring_(std::move(ring)) {
    const auto memory = ring_->memory();
    gpu_->pin(memory[0]);
    try {
      gpu_->pin(memory[1]);
    } catch (...) {
      gpu_->unpin(memory[0]);
      throw;
    }
  }
  PinnedRing(const PinnedRing&) = delete;
  PinnedRing& operator=(const PinnedRing&) = delete;
  ~PinnedRing() {
    for (const std::span<std::byte> memory : ring_->memory()) gpu_->unpin(memory);
  }

 private:
  std::shared_ptr<Gpu> gpu_;
  std::shared_ptr<read::Ring> ring_;
};

}  // namespace chunkio::device
