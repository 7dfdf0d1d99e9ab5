/// What a DeviceLoader's consumer waits for: the loader, the bus, the kernel, or nothing.
///
/// Method. The consumer stalls while next() waits for images (host) and while its stream has
/// nothing to do because a batch is not made yet (device, by events). If it hardly does, it is the
/// limit. Otherwise the three stages before it are compared by the share of the time in which they
/// were at work: the loader, for which the thread that feeds the device waited; the bus, by the
/// events around each copy; the kernel, by the events around it. Stages that overlap are all at
/// work at the same time; the one that never rests is what limits. Where that is the loader, its
/// own counters say why (advice/bottleneck.hpp).
///
/// Pure functions; thread-safe.
#pragma once

#include <chunkio/cuda/device_loader.hpp>
#include <chunkio/diagnosis.hpp>

namespace chunkio::advice {

/// \param stats  counters, times and facts.
[[nodiscard]] Diagnosis diagnose(const cuda::DeviceStats& stats);

}  // namespace chunkio::advice
