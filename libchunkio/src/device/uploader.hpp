/// Brings batches of a loader to the device, ahead of the consumer.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string_view>
#include <thread>
#include <vector>

#include "device/batch_feed.hpp"
#include "device/memory_needs.hpp"
#include "device/side_plan.hpp"
#include "device/sparse_stage.hpp"

namespace chunkio::device {

/// A thread prepares two echo buffers ahead of the consumer, so that one is prepared while the
/// other is used. It puts copies of batches into a stream of its own. A batch goes back to the
/// loader when its copy is done.
class Uploader final : public BatchFeed {
 public:
  /// Device memory that it would take; with rows of a CSR matrix, if they are as long as others.
  [[nodiscard]] static std::int64_t footprint(const Loader& loader, std::int64_t batches,
                                              const SidePlan& side);

  /// \param batches  of the loader in an echo buffer, no more than an epoch has.
  /// \param policy   of host memory for rows of a CSR matrix.
  /// \throws Error as Gpu's functions, page_locked() and allocate().
  Uploader(std::shared_ptr<Gpu> gpu, Loader loader, std::int64_t batches, const SidePlan& side,
           cuda::PinMemory policy, const MemoryNeeds& needs);
  ~Uploader() override;

  /// Drops what was prepared ahead, unless that is what comes next: in the epoch that follows one
  /// of which next() has delivered everything, too. May wait for a read under way.
  void start(std::int64_t epoch) override;
  void restore(std::string_view state) override;
  [[nodiscard]] std::optional<EchoBuffer*> next(base::Seconds limit, base::WaitHook& look) override;
  void release(EchoBuffer* echo_buffer) override;

  [[nodiscard]] const Loader& loader() const noexcept override { return loader_; }
  [[nodiscard]] LoaderStats loader_stats(std::optional<std::int64_t> epoch) const override {
    return epoch ? loader_.epoch_stats(*epoch) : loader_.stats();
  }
  [[nodiscard]] std::vector<SkippedRows> skipped() const override { return loader_.skipped(); }
  [[nodiscard]] Uploads uploads(std::optional<std::int64_t> epoch) const override;
  [[nodiscard]] std::int64_t device_bytes() const noexcept override {
    return device_bytes_.load(std::memory_order_relaxed);
  }

 private:
  using Clock = std::chrono::steady_clock;

  struct CopyTimers {
    GpuTimer begun;
    GpuWaitedTimer done;
  };
  /// A batch whose copy may be under way.
  struct Copying {
    Batch batch;
    const CopyTimers* timers = nullptr;
  };
  /// As long as this lives, the thread waits for the device.
  class DeviceWait {
   public:
    explicit DeviceWait(Uploader& uploader);
    DeviceWait(const DeviceWait&) = delete;
    DeviceWait& operator=(const DeviceWait&) = delete;
    ~DeviceWait();

   private:
    Uploader& uploader_;
  };

  /// Ends the thread and waits for copies under way.
  void stop();
  /// Whether next() would go on there: the end of an epoch is the start of the next one.
  [[nodiscard]] bool stands_at(const LoaderPosition& position) const;
  /// Whether the thread ends after `epoch` instead of preparing the next one.
  [[nodiscard]] bool is_last(std::int64_t epoch) const;

  // The thread's.
  void run(std::stop_token stop, LoaderPosition from);
  /// Whether there is a next epoch to be prepared.
  [[nodiscard]] bool run_epoch(const std::stop_token& stop, const LoaderPosition& from);
  [[nodiscard]] EchoBuffer* take_idle(const std::stop_token& stop);
  /// Puts copies into the stream. False if the epoch has no more batches. May end early after a
  /// stop.
  [[nodiscard]] bool fill(EchoBuffer& echo_buffer, const std::stop_token& stop);
  [[nodiscard]] std::optional<Batch> next_batch();
  void copy(const Batch& batch, EchoBuffer& echo_buffer);
  void copy_sparse(const Batch& batch, SparseStage& stage, EchoBuffer& echo_buffer);
  /// Null if images lead.
  [[nodiscard]] SparseStage* stage_of(const EchoBuffer& echo_buffer) noexcept;
  /// Gives the oldest batch, whose copy is done, back to the loader.
  void give_back();
  void push(EchoBuffer* echo_buffer);
  void begin_epoch_uploads(std::int64_t epoch);
  void count_upload(std::int64_t epoch, const Uploads& more);

  std::shared_ptr<Gpu> gpu_;
  Loader loader_;
  std::int64_t batches_;
  SidePlan side_;
  std::atomic<std::int64_t> device_bytes_;
  GpuStream stream_;
  std::vector<DeviceBuffer> buffers_;
  std::vector<SparseStage> stages_;  // one for each echo buffer, if a CSR matrix leads
  std::vector<EchoBuffer> echo_buffers_;

  mutable std::mutex mutex_;  // Guards what follows.
  std::condition_variable_any idle_available_;
  std::condition_variable echo_buffer_ready_;
  std::vector<EchoBuffer*> idle_;
  std::deque<EchoBuffer*> ready_;
  std::exception_ptr error_;
  bool running_ = false;  // The thread will bring more.
  Uploads uploads_;
  struct EpochUploads {
    std::int64_t epoch = 0;
    Uploads uploads = {};
  };
  std::deque<EpochUploads> epoch_uploads_;  // of those begun last, the latest behind
  std::optional<Clock::time_point> waits_for_device_since_;

  // Of the consumer.
  LoaderPosition position_;  // of what next() delivers
  std::optional<LoaderPosition> restored_;

  // Of the thread; of stop() when it has ended.
  std::vector<CopyTimers> copy_timers_;
  std::size_t next_timers_ = 0;
  std::deque<Copying> copying_;

  std::jthread thread_;
};

}  // namespace chunkio::device
