/// What a loader whose consumer waits for it has counted, and what is found to help.
#pragma once

#include <algorithm>
#include <string>

#include <chunkio/bottleneck.hpp>
#include <chunkio/loader.hpp>

namespace chunkio::test {

/// Ten seconds of two threads, half of which the consumer waited: 100 batches of 100 images of
/// 100 kB, in 100 row groups, read once each.
inline LoaderStats waiting_stats() {
  LoaderStats stats;
  stats.batches = 100;
  stats.images = 10'000;
  stats.bytes_delivered = 1'000'000'000;
  stats.bytes_read = 1'000'000'000;
  stats.chunk_loads = 100;
  stats.num_threads = 2;
  stats.seconds = 10;
  stats.stall_seconds = 5;
  stats.facts = {.source = SourceKind::mapped,
                 .num_cpus = 2,
                 .group_samples = 100,
                 .prefetch_depth = 4,
                 .image_bytes = 1'000'000'000,
                 .spare_bytes = 500'000'000};
  return stats;
}

/// The first suggestion that names `part` in its option or text; null without one.
inline const Suggestion* find_suggestion(const BottleneckReport& report, const std::string& part) {
  const auto found = std::find_if(
      report.suggestions.begin(), report.suggestions.end(), [&](const Suggestion& suggestion) {
        return (suggestion.option + ": " + suggestion.text).find(part) != std::string::npos;
      });
  return found == report.suggestions.end() ? nullptr : &*found;
}

}  // namespace chunkio::test
