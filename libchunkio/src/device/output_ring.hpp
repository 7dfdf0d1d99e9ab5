/// Output batches on the device and their leases.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <chunkio/cuda/device_loader.hpp>

#include "device/gpu.hpp"

namespace chunkio::device {
class OutputRing;
}

namespace chunkio::cuda::internal {

/// One output buffer.
class OutputSlot {
 public:
  device::DeviceBuffer pictures;
  device::DeviceBuffer labels;
  device::DeviceBuffer tasks;
  device::PinnedBuffer host_tasks;
  device::GpuTimer begun;     ///< Nothing but the work that fills it is left to do.
  device::GpuTimer computed;  ///< The kernel that fills it is done.
  device::GpuEvent released;  ///< What the consumer put into its stream is done.
  // In the consumer's stream, around its wait for `computed`.
  device::GpuTimer wait_begun;
  device::GpuTimer wait_ended;
  bool timed = false;  ///< All timers were recorded.

  DeviceTensor pictures_view;
  DeviceTensor labels_view;
  std::vector<std::int64_t> sample_ids;
  std::int64_t epoch = 0;
  std::int64_t step = 0;
  std::int64_t echo_pass = 0;
  Stream consumer = nullptr;
};

}  // namespace chunkio::cuda::internal

namespace chunkio::device {

/// Shared by the DeviceLoader and by every lease, so that a batch outlives its loader.
class OutputRing : public std::enable_shared_from_this<OutputRing> {
 public:
  using Slot = cuda::internal::OutputSlot;

  /// \param rows   of a batch at most.
  /// \throws Error as Gpu's functions.
  OutputRing(std::shared_ptr<Gpu> gpu, std::int64_t num_slots, std::int64_t rows,
             const NormalizePlan& plan, const LabelPlan& labels);
  OutputRing(const OutputRing&) = delete;
  OutputRing& operator=(const OutputRing&) = delete;
  /// Waits for what the consumer does with the batches.
  ~OutputRing();

  /// A slot that nobody holds. Work that fills it must wait for `released`.
  /// \throws Error out_of_resources (all are held: which), and what a release met.
  [[nodiscard]] Slot& take();
  /// Puts it back unused.
  void put_back(Slot& slot);
  /// \param slot  filled; its consumer is set.
  [[nodiscard]] std::shared_ptr<Slot> lease(Slot& slot);

  [[nodiscard]] std::int64_t device_bytes() const noexcept { return device_bytes_; }

 private:
  void release(Slot& slot) noexcept;

  std::shared_ptr<Gpu> gpu_;
  std::int64_t device_bytes_ = 0;
  std::vector<Slot> slots_;

  std::mutex mutex_;  // Guards what follows.
  std::vector<Slot*> idle_;
  std::exception_ptr error_;
};

}  // namespace chunkio::device
