/// Scratch memory that several sources share: no caller works for more than one at a time.
#pragma once

#include <cstddef>
#include <memory>

#include "base/host_memory.hpp"
#include "base/scratch_pool.hpp"

namespace chunkio::base {

/// Thread-safe. Keeps one buffer for each caller at a time, as large as the largest that it asked
/// for.
class BufferPool {
 public:
  /// \returns a lease of at least `bytes`.
  [[nodiscard]] ScratchPool<HostBuffer>::Lease take(std::size_t bytes) {
    return pool_.take([bytes] { return std::make_unique<HostBuffer>(bytes); },
                      [bytes](const HostBuffer& buffer) { return buffer.size() >= bytes; });
  }

 private:
  ScratchPool<HostBuffer> pool_;
};

}  // namespace chunkio::base
