/// Compares packed images with the source that they were made from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <chunkio/dataset.hpp>

#include "h5pack/sources/source_provenance.hpp"

namespace h5pack {

/// An image that is not what its source gives now.
struct SourceDifference {
  std::int64_t row = 0;         ///< In the file.
  std::int64_t source_row = 0;  ///< `source_index` of it.
  std::string file = {};        ///< Empty if the source has no such row.
  std::string reason = {};      ///< A clause: pixels differ, or why the source cannot be decoded.
};

struct SourceComparison {
  std::int64_t compared = 0;
  std::vector<SourceDifference> different = {};  ///< Ascending by row.
};

struct ComparisonOptions {
  /// How many images, drawn at random without repetition; -1: all.
  std::int64_t sample = 100;
  std::uint64_t seed = 0;
};

/// Decodes images of the source again, with the options that the file records, and compares every
/// byte. In parallel; blocks on I/O; polls StopSignal.
/// \throws chunkio::Error unsupported (the file records no options, or no source rows), cancelled,
///         and as Loader: pixels are compared as they are, not with digests.
[[nodiscard]] SourceComparison compare_with_source(const chunkio::Dataset& dataset,
                                                   const SourceProvenance& source,
                                                   const ComparisonOptions& options, bool quiet);

}  // namespace h5pack
