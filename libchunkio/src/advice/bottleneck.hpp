/// What an epoch waits for, and what would help: from counters to words.
///
/// Method. If the consumer hardly waits, the loader is fast enough. Otherwise the workers are the
/// limit, and the stage with the largest share of their busy time is what to improve; if they
/// mostly wait for a free buffer all the same, consumer and loader alternately wait for each other.
/// Shares of time inside the workers, rather than rates, need no reference measurement of the
/// machine.
///
/// Pure functions; thread-safe.
#pragma once

#include <optional>

#include <chunkio/bottleneck.hpp>
#include <chunkio/loader.hpp>
#include <chunkio/tuning.hpp>

namespace chunkio::advice {

/// Below this share of the time the consumer's waiting is the jitter of handing batches over: all
/// that could be gained is less than what two runs differ by.
inline constexpr double kSmallStall = 0.03;

/// \param stats     counters, times and facts.
/// \param measured  what disk, decoding and copying do alone; absent: what the counters say.
[[nodiscard]] BottleneckReport find_bottleneck(const LoaderStats& stats,
                                               const std::optional<MachineRates>& measured = {});

/// Sets `too_short` of a report on a run of `seconds`, and says so first if it is.
void say_if_too_short(BottleneckReport& report, double seconds);

}  // namespace chunkio::advice
