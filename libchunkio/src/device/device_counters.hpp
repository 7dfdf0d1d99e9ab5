/// What a DeviceLoader has counted: in all, and of the epochs that its consumer was in last.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>

#include <chunkio/cuda/device_loader.hpp>

namespace chunkio::device {

/// Any thread.
class DeviceCounters {
 public:
  /// The counters of `epoch` begin anew.
  void enter_epoch(std::int64_t epoch);
  /// An output batch of the epoch that was entered last. \pre one was.
  void count_batch(std::int64_t images, double stall_seconds);
  /// An output batch of `epoch`, by the device's clock.
  void count_times(std::int64_t epoch, double kernel_seconds, double stall_seconds);

  /// In all, or of an epoch: nothing, if it is not remembered. The other members of DeviceStats
  /// stay as they are by default.
  [[nodiscard]] cuda::DeviceStats of(std::optional<std::int64_t> epoch) const;

 private:
  using Clock = std::chrono::steady_clock;
  struct EpochCounters {
    std::int64_t epoch = 0;
    Clock::time_point begun = {};
    cuda::DeviceStats counted = {};
  };

  mutable std::mutex mutex_;  // Guards what follows.
  std::optional<Clock::time_point> begun_;
  cuda::DeviceStats all_;
  std::deque<EpochCounters> epochs_;  // The one that was entered last is behind.
};

}  // namespace chunkio::device
