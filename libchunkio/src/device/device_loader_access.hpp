/// A DeviceLoader on a Gpu of the caller's: for tests on machines without one.
#pragma once

#include <memory>

#include <chunkio/cuda/device_loader.hpp>

#include "device/gpu.hpp"

namespace chunkio::cuda::internal {

struct DeviceLoaderAccess {
  [[nodiscard]] static DeviceLoader make(std::shared_ptr<device::Gpu> gpu, Loader loader,
                                         DeviceOptions options);
};

}  // namespace chunkio::cuda::internal
