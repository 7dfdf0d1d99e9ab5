/// Ranges of a file that threads are fetching into a cache, so that no two fetch the same.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <list>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>

#include <chunkio/byte_source.hpp>

namespace chunkio::io {

/// Thread-safe. Outlives its claims.
class ClaimedRanges {
 public:
  /// A range that others wait for while this lives.
  class Claim {
   public:
    Claim(ClaimedRanges& all, const ByteRange& range)
        : all_(&all), place_(all.ranges_.insert(all.ranges_.end(), range)) {}
    Claim(Claim&& other) noexcept
        : all_(std::exchange(other.all_, nullptr)), place_(other.place_) {}
    Claim& operator=(Claim&& other) noexcept {
      std::swap(all_, other.all_);
      std::swap(place_, other.place_);
      return *this;
    }
    ~Claim() {
      if (all_ == nullptr) return;
      {
        const std::lock_guard lock(all_->mutex_);
        all_->ranges_.erase(place_);
      }
      all_->changed_.notify_all();
    }

   private:
    ClaimedRanges* all_;
    std::list<ByteRange>::iterator place_;
  };

  /// Claims a range; or, if another thread has some of it, waits until that is done, or `stop`.
  /// \returns absent: it waited, and the cache is to be asked again.
  [[nodiscard]] std::optional<Claim> claim(const ByteRange& range, const std::stop_token& stop) {
    const auto meets = [&](const ByteRange& other) {
      return other.begin < range.end && range.begin < other.end;
    };
    std::unique_lock lock(mutex_);
    const auto is_free = [&] { return std::none_of(ranges_.begin(), ranges_.end(), meets); };
    if (is_free()) return Claim(*this, range);
    changed_.wait(lock, stop, is_free);
    return std::nullopt;
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::list<ByteRange> ranges_;
};

}  // namespace chunkio::io
