/// Options of a DeviceLoader that suit its Loader.
#pragma once

#include <cstdint>

#include <chunkio/cuda/device_loader.hpp>
#include <chunkio/loader.hpp>

namespace chunkio::device {

/// \throws Error invalid_argument, which names the option.
void check_options(const Loader& loader, const cuda::DeviceOptions& options);

/// Batches of a big batch. An epoch has no more; what is not there needs no room.
[[nodiscard]] std::int64_t big_batch_of(const Loader& loader, const cuda::DeviceOptions& options);

}  // namespace chunkio::device
