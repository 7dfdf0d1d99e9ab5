/// When requests would be complete if a slower disk answered them.
///
/// Model. Requests are answered in the order they come. The i-th, of n bytes, comes at time t(i).
/// With queue depth Q, latency L and bandwidth B it is
///     taken up at   u(i) = max(t(i), c(i-Q))         a place in the queue is free
///     complete at   c(i) = max(u(i) + L, c(i-1)) + n / B
/// Without L if it begins where request i-1 ended, or inside of it. So bytes flow one request after
/// the other, and latencies overlap, Q at a time. This is a token bucket that holds nothing: what
/// was not used while nobody asked is lost, as it is with a disk. Over any time T, at most B * T
/// bytes arrive, and at most Q * (T / L + 1) requests that continue none.
///
/// The times are computed, not waited for: who asks early, as read-ahead does, waits less.
/// Thread-safe.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <vector>

#include <chunkio/disk_limit.hpp>

namespace chunkio::io {

class DiskLimiter {
 public:
  using Clock = std::chrono::steady_clock;

  /// \param now  a clock that never goes back, for tests.
  /// \throws Error invalid_argument.
  explicit DiskLimiter(const DiskLimit& limit, std::function<Clock::time_point()> now = Clock::now);

  [[nodiscard]] const DiskLimit& limit() const noexcept { return limit_; }

  /// Asks for `bytes` now, and returns when they would be there. Never waits, and
  /// allocates nothing.
  /// \param file_offset  where they begin, if that is known: a request that goes on where the last
  ///                     one ended has no latency.
  Clock::time_point submit(std::int64_t bytes, std::optional<std::int64_t> file_offset = {});

  /// Asks for more bytes of the last request, which has a place in the queue until then; no
  /// latency.
  Clock::time_point submit_more(std::int64_t bytes);

  [[nodiscard]] Clock::time_point now() const { return now_(); }

  /// Waits until then. \returns false if it was stopped before.
  bool wait_until(Clock::time_point time, const std::stop_token& stop);

  /// Both. \returns false if it was stopped before the bytes were there.
  bool transfer(std::int64_t bytes, const std::stop_token& stop,
                std::optional<std::int64_t> file_offset = {});

 private:
  /// Adds the bytes of a request that is ready to be transferred at `ready`. With the mutex held.
  Clock::time_point complete(double ready, std::int64_t bytes);

  const DiskLimit limit_;
  const std::function<Clock::time_point()> now_;
  const Clock::time_point start_;

  std::mutex mutex_;  // innermost; guards what follows
  std::condition_variable_any stopped_;
  // In seconds since start_.
  std::vector<double> under_way_;  // completion of the last queue_depth requests, a ring
  std::size_t oldest_ = 0;         // of them
  double last_complete_ = 0;
  // Of the last request, in the file.
  std::optional<std::int64_t> last_begin_;
  std::int64_t last_end_ = 0;
};

}  // namespace chunkio::io
