/// Which of several ways to do the same work is fastest, found out by doing the work with them.
///
/// Problem. Ways w = 0, 1, ..., all of them right, of which 0 is used if nothing speaks against it.
/// Find the fastest without work that is done for that alone, on a machine that is shared and
/// noisy.
///
/// Rule. The ways have turns of `turn_bytes`, 0 1 2 ... 0 1 2 ..., `num_turns` each, so that all of
/// them meet the same disturbances, and threads that work at the same time mostly work the same
/// way. The speed of a turn is its bytes by the busy seconds of all threads, that of a way the
/// median of its turns. Another way than the first has to be 5 % faster: what cannot be told apart
/// stays as it is. A way that is slower than the first after as many turns has no more
/// of them.
///
/// A worker gets its way from begin(), and tells end() what it took. No clock is read here.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace chunkio::sources {

struct TrialLimits {
  std::int64_t turn_bytes = std::int64_t{32} << 20;
  std::size_t num_turns = 5;  ///< Of each way.
};

/// Thread-safe; without a lock once it is settled.
class Trial {
 public:
  /// Some work, and how it is to be done.
  struct Share {
    std::size_t way = 0;
    std::optional<std::size_t> turn = {};  ///< Absent: it does not count.
  };

  /// \param names  of the ways, one or more; of one way there is nothing to find out.
  Trial(std::vector<std::string> names, TrialLimits limits);

  /// How the next `bytes` are to be done. \pre an end() or give_up() follows.
  [[nodiscard]] Share begin(std::int64_t bytes);
  /// They are done, and took `seconds` of the calling thread.
  void end(const Share& share, std::int64_t bytes, double seconds);
  /// They are not, or what they took is no measure: others take their place.
  void give_up(const Share& share, std::int64_t bytes);
  /// Never again this way, unless it is the last one left. \returns false if it is.
  bool drop(std::size_t way);

  [[nodiscard]] bool settled() const noexcept { return settled_.load(std::memory_order_acquire); }
  /// The fastest way; until that is known, the first.
  [[nodiscard]] std::size_t choice() const noexcept {
    return choice_.load(std::memory_order_relaxed);
  }
  /// What was measured, or that it is being measured, as a clause. Empty: there is nothing to say.
  [[nodiscard]] std::string describe() const;

 private:
  struct Turn {
    std::int64_t given_bytes = 0;
    std::int64_t done_bytes = 0;
    std::int64_t num_running = 0;
    double seconds = 0;
  };

  // With the mutex held.
  [[nodiscard]] bool over(const Turn& turn) const;
  [[nodiscard]] std::size_t turns_over(std::size_t way) const;
  [[nodiscard]] bool has_turns(std::size_t way) const { return !dropped_[way] && !slow_[way]; }
  void leave_out_slow_ways();
  void settle_if_over();
  /// Bytes per second; 0 if nothing was measured.
  [[nodiscard]] double speed(std::size_t way) const;

  const std::vector<std::string> names_;
  const TrialLimits limits_;
  std::atomic<bool> settled_;
  std::atomic<std::size_t> choice_ = 0;

  mutable std::mutex mutex_;  // innermost; guards what follows
  std::vector<bool> dropped_;
  std::vector<bool> slow_;
  std::vector<Turn> turns_;  // number t is one of way t % names_.size()
};

}  // namespace chunkio::sources
