/// What a run would deliver if something of it were changed.
///
/// It is computed with the model of tuning.hpp, from rates that were measured, or else follow
/// from the counters: bytes of a stage over the time the workers spent in it. Real pipelines stay
/// below the bounds of the model, so its answers are scaled by what it is off now: a pipeline at
/// nine tenths of its bound is taken to stay at nine tenths.
///
/// Where nothing is read ahead (bypassing the page cache, in random order), each worker waits for
/// requests of its own, and counters cannot tell latency from bandwidth: all of it is taken for
/// latency, so that what more threads bring is an upper bound. Rates that were measured know both.
///
/// Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <chunkio/bottleneck.hpp>
#include <chunkio/loader.hpp>
#include <chunkio/tuning.hpp>

namespace chunkio::advice {

/// Stands for a stage that takes no time that could be measured.
inline constexpr double kNoLimit = 1e15;

/// What storage is asked for before a worker comes to it, in bytes. In random order nothing is
/// prefetched; libhdf5 reads when asked.
[[nodiscard]] std::int64_t read_ahead_bytes(const LoaderFacts& facts);

/// What the counters say of the machine and of how it is used, as the model wants it.
struct Observed {
  MachineRates rates = {};
  ReadingPlan plan = {};
};

/// \pre stats.images > 0, stats.seconds > 0.
[[nodiscard]] Observed observe(const LoaderStats& stats);

/// What the workers did, in seconds of all of them.
struct WorkerTime {
  explicit WorkerTime(const LoaderStats& stats)
      : busy(stats.read_seconds + stats.decode_seconds + stats.copy_seconds + stats.plan_seconds),
        all(busy + stats.input_wait_seconds + stats.output_wait_seconds) {}

  /// Of all of it; 0 if there is none.
  [[nodiscard]] double share(double seconds) const { return all > 0 ? seconds / all : 0; }

  double busy;
  double all;
};

/// Images a second to the consumer: as it is, and if it never waited.
struct Rates {
  double now = 0;
  double wanted = 0;

  /// Of something that would deliver `rate` images a second.
  [[nodiscard]] Suggestion suggestion(std::string option, std::string text, double rate) const;
};

/// Stages that are computed with the rates of this run, and those of it that are changed.
class Prediction {
 public:
  /// \pre stats.images > 0, stats.seconds > 0.
  Prediction(const LoaderStats& stats, const std::optional<MachineRates>& measured);

  [[nodiscard]] const Observed& observed() const noexcept { return observed_; }
  /// Whether the rates are those of stages alone.
  [[nodiscard]] bool measured() const noexcept { return measured_; }
  [[nodiscard]] const Rates& rates() const noexcept { return rates_; }
  [[nodiscard]] std::int64_t num_cpus() const noexcept { return num_cpus_; }
  /// Each worker waits for requests of its own, and for each at least this long.
  [[nodiscard]] bool waits_for_requests() const noexcept {
    return observed_.plan.read_ahead_bytes == 0 && observed_.rates.disk.request_seconds > 0;
  }

  /// \param echo  how often each image is used.
  [[nodiscard]] Suggestion suggestion(std::string option, std::string text, const Observed& changed,
                                      double echo = 1) const;

  /// Of the loader alone, were it to reach what the model says.
  [[nodiscard]] static double loader(const Observed& observed);

 private:
  Observed observed_;
  bool measured_;
  Rates rates_;
  std::int64_t num_cpus_;
  double efficiency_ = 1;
};

}  // namespace chunkio::advice
