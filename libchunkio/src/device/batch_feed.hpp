/// What a DeviceLoader makes its batches of: pictures on the device, and which of them come next.
///
/// A thread prepares big batches ahead of the consumer, two of them, so that one is prepared while
/// the other is used. Where pictures come from is up to the feed: from the loader, batch by batch
/// (Uploader), or from the device itself (ResidentFeed).
#pragma once

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

#include <chunkio/loader.hpp>

#include "device/bounded_wait.hpp"
#include "device/gpu.hpp"

namespace chunkio::device {

/// Batches of the loader that are used together.
struct BigBatch {
  // On the device.
  const std::byte* pictures = nullptr;
  const std::byte* labels = nullptr;
  GpuEvent uploaded;  ///< They are there.
  GpuEvent consumed;  ///< To be recorded behind the last work that reads them.

  std::int64_t epoch = 0;
  std::int64_t first_batch = 0;          ///< Of the loader, in the epoch.
  std::vector<std::int64_t> batch_rows;  ///< Of each batch.
  // Of all rows of all batches, one batch behind the other.
  std::vector<std::int64_t> sample_ids;
  std::vector<std::int32_t> device_rows;  ///< Where on the device each one is.
};

/// One consumer thread, but for const members.
class BatchFeed {
 public:
  BatchFeed(const BatchFeed&) = delete;
  BatchFeed& operator=(const BatchFeed&) = delete;
  virtual ~BatchFeed() = default;

  /// Goes on at the start of `epoch`; after restore() to that epoch, at its place. Drops what was
  /// prepared ahead, unless that is what comes next. May wait for a read under way.
  /// \pre every big batch was released. \throws Error out_of_resources (no thread), and as Gpu.
  void start(std::int64_t epoch);
  /// The next start() goes on there. \throws Error as Loader::restore().
  void restore(std::string_view state);

  /// The next big batch of the epoch, or null at its end. Waits until it is prepared; its pictures
  /// may still be on their way (`uploaded`).
  /// \param limit  of the time for which the thread may be waiting for the device meanwhile.
  /// \return nothing if that was longer. \throws Error what the loader or the device threw, every
  ///         time.
  [[nodiscard]] std::optional<BigBatch*> next(Seconds limit);
  /// It may be used again once `consumed` is done.
  void release(BigBatch* big_batch);

  /// Of whatever read the pictures.
  [[nodiscard]] virtual LoaderStats loader_stats() const { return loader_.stats(); }
  [[nodiscard]] virtual std::vector<SkippedRows> skipped() const { return loader_.skipped(); }
  /// For its thread-safe members.
  [[nodiscard]] const Loader& loader() const noexcept { return loader_; }
  /// What was copied to the device.
  struct Uploads {
    std::int64_t bytes = 0;
    double seconds = 0;  ///< By the device's clock; of copies that were looked at since.
  };
  [[nodiscard]] Uploads uploads() const;
  [[nodiscard]] virtual std::int64_t device_bytes() const noexcept = 0;

 protected:
  using Clock = std::chrono::steady_clock;

  /// One is prepared while the other is used.
  static constexpr std::int64_t kBigBatches = 2;

  /// As long as this lives, the thread waits for the device.
  class DeviceWait {
   public:
    explicit DeviceWait(BatchFeed& feed);
    DeviceWait(const DeviceWait&) = delete;
    DeviceWait& operator=(const DeviceWait&) = delete;
    ~DeviceWait();

   private:
    BatchFeed& feed_;
  };

  /// \param batches  of the loader in a big batch, no more than an epoch has.
  BatchFeed(std::shared_ptr<Gpu> gpu, Loader loader, std::int64_t batches);

  // The thread calls these three, and restore() the last one while there is no thread.
  virtual void begin_epoch(std::int64_t epoch) = 0;
  /// Fills the last members of `big_batch`, whose others are set, and puts copies into streams.
  /// False if the epoch has no more batches. May end early after a stop.
  [[nodiscard]] virtual bool fill(BigBatch& big_batch, const std::stop_token& stop) = 0;
  /// Goes to the place of a state.
  virtual void go_to(std::string_view state) = 0;
  /// Waits for copies under way. Called when the thread has ended.
  virtual void settle() {}

  /// Ends the thread. To be called by destructors before anything that the thread uses is gone.
  void stop();
  void count_upload(const Uploads& more);

  [[nodiscard]] Gpu& gpu() const noexcept { return *gpu_; }
  [[nodiscard]] const std::shared_ptr<Gpu>& shared_gpu() const noexcept { return gpu_; }
  [[nodiscard]] Loader& own_loader() noexcept { return loader_; }
  [[nodiscard]] std::int64_t batches() const noexcept { return batches_; }
  [[nodiscard]] std::vector<BigBatch>& big_batches() noexcept { return big_batches_; }

 private:
  /// What the thread has ready.
  struct Item {
    std::int64_t epoch = 0;
    BigBatch* big_batch = nullptr;  // Null: the epoch is over.
  };

  void run(std::stop_token stop, std::int64_t epoch);
  [[nodiscard]] bool run_epoch(const std::stop_token& stop, std::int64_t epoch);
  [[nodiscard]] BigBatch* take_idle(const std::stop_token& stop);
  void push(Item item, bool more);

  std::shared_ptr<Gpu> gpu_;
  Loader loader_;
  std::int64_t batches_;
  std::vector<BigBatch> big_batches_;

  mutable std::mutex mutex_;  // Guards what follows.
  std::condition_variable_any idle_available_;
  std::condition_variable item_available_;
  std::vector<BigBatch*> idle_;
  std::deque<Item> items_;
  std::exception_ptr error_;
  bool running_ = false;  // The thread will bring more.
  Uploads uploads_;
  std::optional<Clock::time_point> waits_for_device_since_;

  // Of the consumer.
  std::int64_t epoch_ = 0;  // that next() delivers
  bool ended_ = false;      // next() said that this epoch is over
  bool restored_ = false;   // the next start() keeps the place

  std::jthread thread_;
};

}  // namespace chunkio::device
