/// Output batches on the device and their leases.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <chunkio/cuda/device_loader.hpp>

#include "device/batch_maker.hpp"
#include "device/bounded_wait.hpp"
#include "device/gpu.hpp"
#include "device/memory_needs.hpp"
#include "device/pinned_ring.hpp"
#include "device/side_plan.hpp"

namespace chunkio::device {
class OutputRing;
}

namespace chunkio::internal {

/// One output buffer.
class OutputSlot {
 public:
  device::DeviceBuffer leading;
  device::DeviceBuffer labels;
  std::vector<device::DeviceBuffer> fields;  ///< One for each of SidePlan::fields.
  device::DeviceBuffer tasks;                ///< BatchMaker::write_tasks()
  device::CopySource host_tasks;
  device::GpuTimer begun;     ///< Nothing but the work that fills it is left to do.
  device::GpuTimer computed;  ///< The kernel that fills it is done.
  /// What the consumer put into each of `consumers` is done; maybe more, which are done.
  std::vector<device::GpuEvent> released;
  // In the first of the consumer's streams, around its wait for `computed`.
  device::GpuTimer wait_begun;
  device::GpuTimer wait_ended;
  std::int64_t use = 0;  ///< Kernels are in the stream in this order, from 1 on; 0: not used yet.
  /// The batch before in this buffer, whose consumer this one's kernel waits for.
  std::optional<LoaderPosition> before = {};

  Tensor leading_tensor;
  Tensor label_tensor;
  std::vector<Tensor> field_tensors;
  const device::SidePlan* side = nullptr;  ///< Of the ring, for the names of the fields.
  std::vector<std::int64_t> sample_ids;
  std::int64_t epoch = 0;
  std::int64_t step = 0;
  std::int64_t echo_pass = 0;
  /// Streams that use the batch: that of next() first.
  std::vector<cuda::Stream> consumers;
  std::shared_ptr<device::Gpu> gpu;

  /// See DeviceBatch::use_on().
  void use_on(cuda::Stream stream);
};

}  // namespace chunkio::internal

namespace chunkio::device {

/// Shared by the DeviceLoader and by every lease, so that a batch outlives its loader.
class OutputRing : public std::enable_shared_from_this<OutputRing> {
 public:
  using Slot = internal::OutputSlot;

  /// \param rows  of a batch at most.
  /// \throws Error as Gpu's functions, page_locked() and allocate().
  OutputRing(std::shared_ptr<Gpu> gpu, std::int64_t num_slots, std::int64_t rows,
             const BatchMaker& maker, const SidePlan& side, cuda::PinMemory policy,
             const MemoryNeeds& needs);
  OutputRing(const OutputRing&) = delete;
  OutputRing& operator=(const OutputRing&) = delete;
  /// Waits for what the consumer does with the batches.
  ~OutputRing();

  /// Device memory that it takes.
  [[nodiscard]] static std::int64_t footprint(std::int64_t num_slots, std::int64_t rows,
                                              const BatchMaker& maker,
                                              const SidePlan& side) noexcept;

  /// The slot that nobody has held for longest: the consumer's stream may still read the one that
  /// was released last. Work that fills it must wait for `released`. If all are held, waits until
  /// one is released.
  /// \throws WaitEnded (timed_out: all are held, and which), Interrupted, Error (what a release
  /// met).
  [[nodiscard]] Slot& take(base::Seconds limit, base::WaitHook& look);
  /// Puts it back unused; it is the next one again.
  void put_back(Slot& slot);
  /// \param slot  filled; its consumers are set.
  [[nodiscard]] std::shared_ptr<Slot> lease(Slot& slot);

  /// What the device has not finished: the oldest batch, and whom it may be waiting for.
  /// \throws Error as Gpu::is_done().
  [[nodiscard]] std::string unfinished();

  /// BatchTarget::scratch of all batches. Null where none is needed.
  [[nodiscard]] std::byte* scratch() const noexcept { return scratch_.get(); }

  [[nodiscard]] std::int64_t device_bytes() const noexcept { return device_bytes_; }

 private:
  void release(Slot& slot) noexcept;

  std::shared_ptr<Gpu> gpu_;
  SidePlan side_;
  std::int64_t device_bytes_ = 0;
  DeviceBuffer scratch_;
  std::vector<Slot> slots_;

  std::mutex mutex_;  // Guards what follows.
  std::condition_variable slot_released_;
  std::vector<Slot*> idle_;  // The first one was released first.
  std::exception_ptr error_;
  std::optional<std::chrono::steady_clock::time_point> held_since_;  // all of them
};

}  // namespace chunkio::device
