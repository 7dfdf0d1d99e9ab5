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
}

DiskLimiter::Clock::time_point DiskLimiter::submit(std::int64_t bytes,
                                                   std::optional<std::int64_t> file_offset) {
  const std::lock_guard lock(mutex_);
  // Read under the lock, so that requests come in the order of their times.
  double taken_up = std::chrono::duration<double>(now_() - start_).count();
  if (limit_.queue_depth > 0 && under_way_.size() == static_cast<std::size_t>(limit_.queue_depth)) {
    taken_up = std::max(taken_up, under_way_.front());
    under_way_.pop_front();
  }
  const bool continues = file_offset && file_offset == last_end_;
  const double latency = continues ? 0 : limit_.request_seconds;
  const double transfer =
      limit_.bytes_per_second > 0 ? static_cast<double>(bytes) / limit_.bytes_per_second : 0;
  last_complete_ = std::min(std::max(taken_up + latency, last_complete_) + transfer, kForever);
  last_end_ = file_offset ? std::optional(*file_offset + bytes) : std::nullopt;
  if (limit_.queue_depth > 0) under_way_.push_back(last_complete_);
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
