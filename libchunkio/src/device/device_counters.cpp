#include "device/device_counters.hpp"

#include <cstddef>

namespace chunkio::device {
namespace {

constexpr std::size_t kEpochsRemembered = 8;

double seconds_since(std::chrono::steady_clock::time_point begun) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
}

}  // namespace

void DeviceCounters::enter_epoch(std::int64_t epoch) {
  const std::lock_guard lock(mutex_);
  const Clock::time_point now = Clock::now();
  if (!begun_) begun_ = now;
  std::erase_if(epochs_, [epoch](const EpochCounters& old) { return old.epoch == epoch; });
  if (epochs_.size() == kEpochsRemembered) epochs_.pop_front();
  epochs_.push_back({.epoch = epoch, .begun = now});
}

void DeviceCounters::count_batch(std::int64_t images, double stall_seconds) {
  const std::lock_guard lock(mutex_);
  EpochCounters& epoch = epochs_.back();
  const auto count = [&](cuda::DeviceStats& stats, Clock::time_point begun) {
    ++stats.batches;
    stats.images += images;
    stats.stall_seconds += stall_seconds;
    stats.seconds = seconds_since(begun);
  };
  count(all_, *begun_);
  count(epoch.counted, epoch.begun);
}

void DeviceCounters::count_times(std::int64_t epoch, double kernel_seconds, double stall_seconds) {
  const std::lock_guard lock(mutex_);
  const auto count = [&](cuda::DeviceStats& stats) {
    stats.kernel_seconds += kernel_seconds;
    stats.device_stall_seconds += stall_seconds;
  };
  count(all_);
  for (EpochCounters& one : epochs_) {
    if (one.epoch == epoch) count(one.counted);
  }
}

cuda::DeviceStats DeviceCounters::of(std::optional<std::int64_t> epoch) const {
  const std::lock_guard lock(mutex_);
  if (!epoch) return all_;
  for (const EpochCounters& one : epochs_) {
    if (one.epoch == *epoch) return one.counted;
  }
  return {};
}

}  // namespace chunkio::device
