/// What an epoch waits for, and what would help: from counters to words.
///
/// Method. If the consumer hardly waits, the loader is fast enough. Otherwise the workers are the
/// limit, and the stage with the largest share of their busy time is what to improve; if they
/// mostly wait for a free buffer all the same, consumer and loader alternately wait for each other.
/// Shares of time inside the workers, rather than rates, need no reference measurement of the
/// machine.
///
/// What a cure would bring is computed with the model of throughput.hpp, from rates that were
/// measured, or else follow from the counters: bytes of a stage over the time the workers spent in
/// it. Real pipelines stay below the bounds of the model, so its answers are scaled by what it is
/// off now: a pipeline at nine tenths of its bound is taken to stay at nine tenths.
///
/// Where nothing is read ahead (bypassing the page cache, in random order), each worker waits for
/// requests of its own, and counters cannot tell latency from bandwidth: all of it is taken for
/// latency, so that what more threads bring is an upper bound. Rates that were measured know both.
///
/// Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <optional>

#include <chunkio/diagnosis.hpp>
#include <chunkio/loader.hpp>
#include <chunkio/throughput.hpp>

namespace chunkio::advice {

/// Below this share of the time the consumer's waiting is the jitter of handing batches over: all
/// that could be gained is less than what two runs differ by.
inline constexpr double kSmallStall = 0.03;

/// Threads that wait for the disk by themselves, where nothing is read ahead, at most.
inline constexpr std::int64_t kMaxWaitingThreads = 32;

/// Whether it is worth a word that each batch be used `uses` times, were that to let the consumer
/// never wait: samples that are used more often than eight times are hardly new any more, and a
/// consumer that keeps batches for less than a millisecond counts them, and trains with none.
[[nodiscard]] bool may_echo(double uses, double step_seconds);

/// What the counters say of the machine and of how it is used, as the model wants it.
struct Observed {
  MachineRates rates = {};
  ReadingPlan plan = {};
};

/// \pre stats.images > 0, stats.seconds > 0.
[[nodiscard]] Observed observe(const LoaderStats& stats);

/// \param stats     counters, times and facts.
/// \param measured  what disk, decoding and copying do alone; absent: what the counters say.
[[nodiscard]] Diagnosis diagnose(const LoaderStats& stats,
                                 const std::optional<MachineRates>& measured = {});

/// Sets `too_short` of what was diagnosed of a run of `seconds`, and says so first if it is.
void say_if_too_short(Diagnosis& diagnosis, double seconds);

/// "12 %" of 0.123.
[[nodiscard]] std::string percent(double share);
/// "1.25 GB/s", "480 MB/s".
[[nodiscard]] std::string byte_rate(double bytes_per_second);

/// Best first. Those that bring less than one part in a hundred are left out.
void sort_cures(std::vector<Cure>& cures, double images_per_second_now);

}  // namespace chunkio::advice
