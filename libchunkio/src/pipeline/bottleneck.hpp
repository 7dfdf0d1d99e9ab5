/// What an epoch waits for, and what would help: from counters to words.
///
/// Method. If the consumer hardly waits, the loader is fast enough. Otherwise the workers are the
/// limit, and the stage with the largest share of their busy time is what to improve. Shares of
/// time inside the workers, rather than rates, need no reference measurement of the machine.
///
/// Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include <chunkio/loader.hpp>

namespace chunkio::pipeline {

/// What is known beside the counters.
struct ReaderFacts {
  SourceKind source = SourceKind::automatic;
  OrderMode order = OrderMode::chunk_shuffled;
  bool filtered = false;           ///< Pictures are stored compressed or otherwise filtered.
  bool resident = false;           ///< Pictures are kept in memory.
  std::int64_t num_cpus = 1;       ///< That this process may use.
  std::int64_t picture_bytes = 0;  ///< Of all pictures, in memory.
  std::int64_t spare_bytes = 0;    ///< Of the memory budget, not reserved.
};

struct Bottleneck {
  Bound bound = Bound::none;
  std::string advice = {};  ///< A sentence; empty for Bound::none.
};

/// \param stats  counters and times; `bound` and `advice` are ignored.
[[nodiscard]] Bottleneck find_bottleneck(const LoaderStats& stats, const ReaderFacts& facts);

}  // namespace chunkio::pipeline
