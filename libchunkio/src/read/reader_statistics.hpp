/// What a WindowReader counts, for each epoch and in all.
///
/// Work counts for the epoch that it is done for, which may be ahead of the consumer. Waiting
/// counts for the epoch in which the consumer is while it lasts: a worker that waits through the
/// end of one epoch and the start of the next waits for a part in each. Between the last batch of
/// an epoch and the start of the next, while a trainer validates, say, waiting counts in the total
/// only.
///
/// Not thread-safe: guarded by Ring::mutex().
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include <chunkio/loader.hpp>

#include "base/chunk_source.hpp"

namespace chunkio::read {

class ReaderStatistics {
 public:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;

  /// What a worker without work waits for.
  enum class WaitFor : std::uint8_t { input = 0, output = 1 };

  /// Of those that the consumer was in.
  static constexpr std::size_t kEpochsRemembered = 8;
  /// Of one epoch, with its node in the map.
  static constexpr std::int64_t kEpochBytes = 512;

  /// Reading begins anew, somewhere else: what was prefetched and not delivered counts for nothing.
  void restart(Time now);
  /// The consumer is in `epoch`, whose clock starts unless it goes on in the middle of it.
  void enter(std::int64_t epoch, bool goes_on, Time now);
  /// The consumer took the last batch of its epoch.
  void leave(Time now);

  void add_plan(std::int64_t epoch, double seconds);
  void add_group_read(std::int64_t epoch, const ReadCost& cost);
  /// A batch as it was handed out.
  struct Delivered {
    std::int64_t images = 0;
    std::int64_t skipped = 0;
    std::int64_t bytes = 0;
    bool copied = false;
  };
  /// A batch of the consumer's epoch, asked for at `asked` and complete at `complete`. Never
  /// throws: what it counts in was made by enter().
  void add_batch(const Delivered& batch, Time asked, Time complete) noexcept;

  void begin_wait(WaitFor what, Time now);
  void end_wait(WaitFor what, Time now);

  [[nodiscard]] const LoaderStats& total() const noexcept { return total_; }
  /// Zeros for an epoch that is not remembered.
  [[nodiscard]] LoaderStats epoch(std::int64_t epoch) const;

 private:
  struct Visited {
    LoaderStats stats = {};
    std::int64_t number = 0;  ///< Visits are counted.
  };

  /// Counts the waits that go on up to `now`.
  void settle_waits(Time now) noexcept;
  [[nodiscard]] LoaderStats& of(std::int64_t epoch);

  LoaderStats total_;
  /// Epochs that the consumer is or was in. What is prefetched is apart: it counts only once the
  /// consumer comes there, and replaces what was counted for an earlier visit.
  std::map<std::int64_t, Visited> visited_;
  std::map<std::int64_t, LoaderStats> ahead_;
  std::int64_t num_visits_ = 0;

  std::int64_t consumer_epoch_ = -1;
  bool in_epoch_ = false;  // not between two
  std::optional<Time> first_started_;
  Time epoch_started_;

  std::array<std::int64_t, 2> num_waiting_ = {};  // by WaitFor
  Time settled_;
};

}  // namespace chunkio::read
