/// What a DatasetWriter is asked for, checked before anything is done for it. The specification of
/// the dataset is checked by h5::validate().
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include <chunkio/chunk_layout.hpp>
#include <chunkio/dataset_writer.hpp>
#include <chunkio/error.hpp>

#include "base/checked_math.hpp"
#include "base/require.hpp"
#include "h5/schema.hpp"
#include "h5/source_sizes.hpp"

namespace chunkio::write {

/// \throws Error invalid_argument for options of a journal: WriterOptions, EncodedWriterOptions.
template <class Options>
void check_journal_options(const Options& options) {
  base::require(options.commit_bytes >= 1,
                "commit_bytes must be at least 1, got " + std::to_string(options.commit_bytes));
  base::require(!options.resume || !options.identity.empty(),
                "resume needs an identity of the run");
}

/// \throws Error invalid_argument for options that do not depend on the dataset.
inline void check_options(const WriterOptions& options) {
  check_journal_options(options);
  const auto& [level, shuffle] = options.filter;
  base::require(
      level >= (shuffle ? 1 : 0) && level <= 9,
      "deflate_level must be 0 to 9, and at least 1 with shuffle, got " + std::to_string(level));
}

/// Samples of a chunk, as chosen or as asked for. \pre h5::validate(spec).
/// \throws Error invalid_argument if a chunk would exceed 4 GiB, or options are out of range.
[[nodiscard]] inline std::int64_t checked_chunk_samples(const DatasetSpec& spec,
                                                        const WriterOptions& options) {
  const std::int64_t sample_bytes = spec.height * spec.width * spec.channels;
  base::require(options.chunk_samples >= 0,
                "chunk_samples must be 0 or more, got " + std::to_string(options.chunk_samples));
  if (options.chunk_samples == 0) {
    return choose_chunk_samples(sample_bytes, spec.num_samples, options.chunk_bytes);
  }
  const std::int64_t samples = std::min(options.chunk_samples, spec.num_samples);
  // The same limit as for the choice: HDF5 counts the bytes of a chunk in 32 bits.
  const auto bytes = base::checked_multiply(samples, sample_bytes);
  if (!bytes || *bytes > std::int64_t{0xffffffff}) {
    throw Error(ErrorCode::invalid_argument,
                std::to_string(samples) + " samples of " + std::to_string(sample_bytes) +
                    " bytes are too much for one chunk (4 GiB); lower chunk_samples",
                "chunk_samples");
  }
  return samples;
}

/// \throws Error invalid_argument if the statistics cannot be those of such a dataset.
inline void check_statistics(const DatasetSpec& spec, const DatasetStatistics& statistics) {
  const auto require = [](bool met, const std::string& what) {
    base::require(met, "dataset statistics: " + what);
  };
  const auto all_finite = [](const std::vector<double>& values) {
    return std::all_of(values.begin(), values.end(),
                       [](double value) { return std::isfinite(value); });
  };
  const std::string channels = std::to_string(spec.channels) + " channels";
  const auto& [mean, std] = statistics.channels;
  require(mean.size() == std.size() && (mean.empty() || std::cmp_equal(mean.size(), spec.channels)),
          "mean and std need one number for each of the " + channels);
  require(all_finite(mean) && all_finite(std), "mean and std must be finite");
  const auto& counts = statistics.class_counts;
  require(counts.empty() || spec.class_names.empty() || counts.size() == spec.class_names.size(),
          std::to_string(counts.size()) + " class counts for " +
              std::to_string(spec.class_names.size()) + " classes");
  // More than readers take would be noticed when the file is read back, after all the work.
  const std::int64_t most = h5::max_classes(spec.num_samples);
  require(std::cmp_less_equal(counts.size(), most),
          "there are more than " + std::to_string(most) + " class counts");
  require(std::all_of(counts.begin(), counts.end(),
                      [&](std::int64_t n) { return n >= 0 && n <= spec.num_samples; }),
          "class counts must lie between 0 and the number of samples");
  const auto& within = statistics.mean_picture_std;
  require((within.empty() || std::cmp_equal(within.size(), spec.channels)) && all_finite(within),
          "mean_picture_std needs one finite number for each of the " + channels);
  if (!statistics.source_sizes) return;
  require(h5::are_possible(*statistics.source_sizes, spec.num_samples),
          "source sizes contradict each other or the number of samples");
  require(std::cmp_less_equal(statistics.source_sizes->most_frequent.size(), h5::kMaxEntries / 3),
          "there are more than " + std::to_string(h5::kMaxEntries / 3) + " source sizes");
}

}  // namespace chunkio::write
