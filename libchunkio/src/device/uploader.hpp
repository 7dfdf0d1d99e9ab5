/// Brings batches of a loader to the device, ahead of the consumer.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "device/batch_feed.hpp"
#include "device/memory_needs.hpp"

namespace chunkio::device {

/// The thread puts copies of batches into a stream of its own. A batch goes back to the loader when
/// its copy is done.
class Uploader final : public BatchFeed {
 public:
  /// Device memory that it would take.
  [[nodiscard]] static std::int64_t footprint(const Loader& loader, std::int64_t batches,
                                              const LabelPlan& labels);

  /// \throws Error as Gpu's functions and allocate().
  Uploader(std::shared_ptr<Gpu> gpu, Loader loader, std::int64_t batches, const LabelPlan& labels,
           const MemoryNeeds& needs);
  ~Uploader() override;

  [[nodiscard]] std::int64_t device_bytes() const noexcept override { return device_bytes_; }

 private:
  struct CopyTimers {
    GpuTimer begun;
    GpuTimer done;
  };
  /// A batch whose copy may be under way.
  struct Copying {
    Batch batch;
    const CopyTimers* timers = nullptr;
  };

  void begin_epoch(std::int64_t epoch) override { own_loader().start_epoch(epoch); }
  [[nodiscard]] bool fill(BigBatch& big_batch, const std::stop_token& stop) override;
  void go_to(std::string_view state) override { own_loader().restore(state); }
  void settle() override;

  [[nodiscard]] std::optional<Batch> next_batch();
  void copy(const Batch& batch, BigBatch& big_batch);
  /// Gives the oldest batch, whose copy is done, back to the loader.
  void give_back();

  LabelPlan labels_;
  std::int64_t device_bytes_;
  GpuStream stream_;
  std::vector<DeviceBuffer> buffers_;

  // Of the thread.
  std::vector<CopyTimers> copy_timers_;
  std::size_t next_timers_ = 0;
  std::deque<Copying> copying_;
};

}  // namespace chunkio::device
