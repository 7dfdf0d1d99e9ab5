/// The batch buffers of a loader, page-locked.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include <chunkio/cuda/device_loader.hpp>
#include <chunkio/error.hpp>

#include "device/gpu.hpp"
#include "pipeline/loader_access.hpp"
#include "pipeline/ring.hpp"

namespace chunkio::device {

/// Locks on construction, unlocks on destruction. Batches of the loader may live longer.
class PinnedRing {
 public:
  /// \return null if `policy` is off, or prefer and the system refuses.
  /// \throws Error out_of_resources: it refuses, and `policy` is require.
  [[nodiscard]] static std::unique_ptr<PinnedRing> of(const std::shared_ptr<Gpu>& gpu,
                                                      const Loader& loader,
                                                      cuda::PinMemory policy) {
    if (policy == cuda::PinMemory::off) return nullptr;
    try {
      return std::make_unique<PinnedRing>(gpu, internal::LoaderAccess::ring(loader));
    } catch (const Error& error) {
      if (policy == cuda::PinMemory::prefer) return nullptr;
      throw Error(error.code(),
                  std::string(error.what()) +
                      "; lower the loader's memory, raise the limit of locked memory (ulimit -l), "
                      "or set pin_memory to prefer");
    }
  }

  PinnedRing(std::shared_ptr<Gpu> gpu, std::shared_ptr<pipeline::Ring> ring)
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
  std::shared_ptr<pipeline::Ring> ring_;
};

}  // namespace chunkio::device
