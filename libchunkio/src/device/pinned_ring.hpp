/// The batch buffers of a loader, page-locked.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "device/gpu.hpp"
#include "pipeline/ring.hpp"

namespace chunkio::device {

/// Locks on construction, unlocks on destruction. Batches of the loader may live longer.
class PinnedRing {
 public:
  /// \throws Error out_of_resources: the system refuses.
  PinnedRing(std::shared_ptr<Gpu> gpu, std::shared_ptr<pipeline::Ring> ring)
      : gpu_(std::move(gpu)), ring_(std::move(ring)) {
    const std::array<std::span<std::byte>, 2> memory = ring_->memory();
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
