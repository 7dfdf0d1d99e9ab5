/// What would help a run, and by how much.
///
/// Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include <chunkio/bottleneck.hpp>
#include <chunkio/loader.hpp>

#include "advice/prediction.hpp"

namespace chunkio::advice {

/// Threads that wait for the disk by themselves, where nothing is read ahead, at most.
inline constexpr std::int64_t kMaxWaitingThreads = 32;

/// Whether it is worth a word that each batch be used `uses` times, were that to let the consumer
/// never wait: samples that are used more often than eight times are hardly new any more, and a
/// consumer that keeps batches for less than a millisecond counts them, and trains with none.
[[nodiscard]] bool may_echo(double uses, double step_seconds);

/// Best first. Those that bring less than one part in a hundred are left out.
void sort_suggestions(std::vector<Suggestion>& suggestions, double images_per_second_now);

/// What helps against `bottleneck`, best first; of equals, first what costs nothing.
[[nodiscard]] std::vector<Suggestion> find_suggestions(Bottleneck bottleneck,
                                                       const LoaderStats& stats,
                                                       const Prediction& prediction);

}  // namespace chunkio::advice
