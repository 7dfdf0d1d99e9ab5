/// Brings batches of a loader to the device, ahead of the consumer.
///
/// A thread takes batches from the loader and puts copies of them into a stream of its own, into
/// one of two big batches while the other is being used. A batch goes back to the loader when its
/// copy is done, a big batch when the kernels that read it are.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include <chunkio/loader.hpp>

#include "device/gpu.hpp"

namespace chunkio::device {

/// Pictures and labels on the device, as the loader delivered them, one batch behind the other.
struct BigBatch {
  DeviceBuffer pictures;
  DeviceBuffer labels;
  GpuEvent uploaded;
  GpuEvent consumed;  ///< To be recorded behind the last work that reads it.

  std::int64_t epoch = 0;
  std::int64_t first_batch = 0;          ///< Of the loader, in the epoch.
  std::vector<std::int64_t> batch_rows;  ///< Of each batch.
  std::vector<std::int64_t> sample_ids;  ///< Of all rows.
};

class Uploader {
 public:
  /// \param batches  of the loader in a big batch.
  /// \throws Error as Gpu's functions.
  Uploader(std::shared_ptr<Gpu> gpu, Loader loader, std::int64_t batches, const LabelPlan& labels);
  Uploader(const Uploader&) = delete;
  Uploader& operator=(const Uploader&) = delete;
  /// Joins the thread and waits for copies under way.
  ~Uploader();

  /// Goes on at the start of `epoch`; after restore() of that epoch, at its place. Drops what was
  /// uploaded ahead, unless that is what comes next. May wait for a read under way. \pre every big
  /// batch was released.
  void start(std::int64_t epoch);
  /// \throws Error as Loader::restore().
  void restore(std::string_view state);

  /// The next big batch of the epoch, or null at its end. Waits until it was put into the copy
  /// stream, not until it is there.
  /// \throws Error what the loader or the device threw, every time.
  [[nodiscard]] BigBatch* next();
  /// It may be filled again once `consumed` is done.
  void release(BigBatch* big_batch);

  /// Where restore() went. \pre start() was not called since.
  [[nodiscard]] LoaderPosition position() const { return loader_.position(); }
  /// Thread-safe members of the loader only: its thread is the uploader's.
  [[nodiscard]] const Loader& loader() const noexcept { return loader_; }
  [[nodiscard]] std::int64_t device_bytes() const noexcept { return device_bytes_; }
  [[nodiscard]] std::int64_t bytes_uploaded() const;

 private:
  /// What the thread has ready.
  struct Item {
    std::int64_t epoch = 0;
    BigBatch* big_batch = nullptr;  // Null: the epoch is over.
  };
  /// A batch whose copy may be under way.
  struct Copying {
    Batch batch;
    EventHandle done = nullptr;
  };

  void stop();
  void run(std::stop_token stop, std::int64_t epoch);
  [[nodiscard]] BigBatch* take_idle(std::stop_token stop);
  [[nodiscard]] bool fill(BigBatch& big_batch, std::int64_t epoch);
  [[nodiscard]] std::optional<Batch> next_batch();
  void copy(const Batch& batch, BigBatch& big_batch);
  void push(Item item);

  std::shared_ptr<Gpu> gpu_;
  Loader loader_;
  std::int64_t batches_;
  LabelPlan labels_;
  std::int64_t device_bytes_ = 0;
  GpuStream stream_;
  std::vector<BigBatch> big_batches_;

  // Of the thread.
  std::vector<GpuEvent> copy_events_;
  std::size_t next_event_ = 0;
  std::deque<Copying> copying_;

  mutable std::mutex mutex_;  // Guards what follows.
  std::condition_variable_any idle_available_;
  std::condition_variable item_available_;
  std::vector<BigBatch*> idle_;
  std::deque<Item> items_;
  std::exception_ptr error_;
  bool running_ = false;  // The thread will bring more.
  std::int64_t bytes_uploaded_ = 0;

  // Of the consumer.
  std::int64_t epoch_ = 0;  // that next() delivers
  bool ended_ = false;      // next() said that this epoch is over
  bool restored_ = false;   // the place of the loader is kept by the next start()

  std::jthread thread_;
};

}  // namespace chunkio::device
