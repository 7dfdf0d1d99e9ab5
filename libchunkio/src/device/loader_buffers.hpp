/// All memory of a DeviceLoader: its output batches, and what they are made of.
#pragma once

#include <cstdint>
#include <memory>

#include <chunkio/cuda/device_loader.hpp>

#include "device/batch_feed.hpp"
#include "device/batch_maker.hpp"
#include "device/gpu.hpp"
#include "device/output_ring.hpp"
#include "device/pinned_ring.hpp"
#include "device/side_plan.hpp"

namespace chunkio::device {

struct LoaderBuffers {
  // In this order: a member is destroyed before what it uses.
  std::unique_ptr<PinnedRing> locked_ring = {};  ///< Null if the loader's ring is not page-locked.
  std::shared_ptr<OutputRing> outputs = {};
  std::unique_ptr<BatchFeed> feed = {};

  bool resident = false;  ///< The dataset is on the device.
  bool pinned = false;    ///< What was or is copied to the device comes from page-locked memory.
  std::int64_t dataset_bytes = 0;      ///< What the dataset takes, or would, on the device.
  std::int64_t free_device_bytes = 0;  ///< Before anything was allocated.
};

/// Keeps the dataset on the device if `options.resident` asks for it or there is room; otherwise
/// the feed uploads echo buffers. Blocks on I/O in the first case.
/// \param loader  never started. \param options  checked.
/// \throws Error unsupported (random crops are asked to be resident), out_of_resources (device
///         memory: how much is needed, and for what; page-locked memory), and as Gpu and Loader.
[[nodiscard]] LoaderBuffers make_buffers(const std::shared_ptr<Gpu>& gpu, Loader loader,
                                         const cuda::DeviceOptions& options, const SidePlan& side,
                                         const BatchMaker& maker);

}  // namespace chunkio::device
