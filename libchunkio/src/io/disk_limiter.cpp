#include "io/disk_limiter.hpp"

#include <algorithm>
#include <utility>

namespace chunkio::io {
namespace {

// More than anybody waits, and far from the end of the clock.
constexpr double kForever = 1e9;

}  // namespace

DiskLimiter::DiskLimiter(const DiskLimit& limit, std::function<Clock::time_point()> now)
    : limit_(limit), now_(std::move(now)), start_(now_()) {
  require_valid(limit_);
  under_way_.resize(static_cast<std::size_t>(limit_.queue_depth));
}

DiskLimiter::Clock::time_point DiskLimiter::submit(std::int64_t bytes,
                                                   std::optional<std::int64_t> file_offset) {
  const std::lock_guard lock(mutex_);
  // Read under the lock, so that requests come in the order of their times.
  double taken_up = std::chrono::duration<double>(now_() - start_).count();
  if (!under_way_.empty()) taken_up = std::max(taken_up, under_way_[oldest_]);
  const bool continues =
      file_offset && last_begin_ && *last_begin_ < *file_offset && *file_offset <= last_end_;
  const double latency = continues ? 0 : limit_.request_seconds;
  last_begin_ = file_offset;
  last_end_ = file_offset.value_or(0) + bytes;
  const Clock::time_point when = complete(taken_up + latency, bytes);
  if (!under_way_.empty()) {
    under_way_[oldest_] = last_complete_;
    oldest_ = (oldest_ + 1) % under_way_.size();
  }
  return when;
}

DiskLimiter::Clock::time_point DiskLimiter::submit_more(std::int64_t bytes) {
  const std::lock_guard lock(mutex_);
  const Clock::time_point when =
      complete(std::chrono::duration<double>(now_() - start_).count(), bytes);
  if (!under_way_.empty()) {
    under_way_[(oldest_ + under_way_.size() - 1) % under_way_.size()] = last_complete_;
  }
  return when;
}

DiskLimiter::Clock::time_point DiskLimiter::complete(double ready, std::int64_t bytes) {
  const double transfer =
      limit_.bytes_per_second > 0 ? static_cast<double>(bytes) / limit_.bytes_per_second : 0;
  last_complete_ = std::min(std::max(ready, last_complete_) + transfer, kForever);
  // Rounded up: never a moment early.
  return start_ + std::chrono::ceil<Clock::duration>(std::chrono::duration<double>(last_complete_));
}

bool DiskLimiter::wait_until(Clock::time_point time, const std::stop_token& stop) {
  if (now_() >= time) return true;
  std::unique_lock lock(mutex_);
  stopped_.wait_until(lock, stop, time, [] { return false; });
  return !stop.stop_requested();
}

bool DiskLimiter::transfer(std::int64_t bytes, const std::stop_token& stop,
                           std::optional<std::int64_t> file_offset) {
  return wait_until(submit(bytes, file_offset), stop);
}

}  // namespace chunkio::io
