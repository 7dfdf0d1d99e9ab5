/// The GPU that tests of the device layer run on.
#pragma once

#include <functional>
#include <memory>

#include "device/gpu.hpp"

namespace chunkio::test {

/// Its device memory can be read and written by the host, too, while no stream uses it.
class GpuOfTests : public device::Gpu {
 public:
  /// Puts work of the test's own into a stream, where it may take its time.
  virtual void run_on(device::StreamHandle stream, std::function<void()> work) = 0;
  /// Waits for all that is in all streams.
  virtual void drain() noexcept = 0;
};

/// Simulated by threads and host memory (simulated_gpu.cpp), or a CUDA device
/// (cuda_gpu_of_tests.cpp): whichever the program is linked with. \throws Error, where there is no
/// such device.
[[nodiscard]] std::unique_ptr<GpuOfTests> make_gpu_of_tests();

}  // namespace chunkio::test
