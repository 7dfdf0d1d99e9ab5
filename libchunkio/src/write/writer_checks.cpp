#include "write/writer_checks.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include <chunkio/chunk_layout.hpp>
#include <chunkio/error.hpp>

#include "base/checked_math.hpp"
#include "h5/schema.hpp"
#include "h5/source_sizes.hpp"

namespace chunkio::write {

void check_options(const WriterOptions& options) {
  if (options.commit_bytes < 1) {
    throw Error(ErrorCode::invalid_argument,
                "commit_bytes must be at least 1, got " + std::to_string(options.commit_bytes));
  }
  if (options.resume && options.identity.empty()) {
    throw Error(ErrorCode::invalid_argument, "resume needs an identity of the run");
  }
  const auto& [level, shuffle] = options.filter;
  if (level < 0 || level > 9 || (shuffle && level == 0)) {
    throw Error(
        ErrorCode::invalid_argument,
        "deflate_level must be 0 to 9, and at least 1 with shuffle, got " + std::to_string(level));
  }
}

std::int64_t checked_chunk_samples(const DatasetSpec& spec, const WriterOptions& options) {
  const std::int64_t sample_bytes = spec.height * spec.width * spec.channels;
  if (options.chunk_samples < 0) {
    throw Error(ErrorCode::invalid_argument,
                "chunk_samples must be 0 or more, got " + std::to_string(options.chunk_samples));
  }
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

void check_statistics(const DatasetSpec& spec, const DatasetStatistics& statistics) {
  const auto fail = [](const std::string& what) {
    throw Error(ErrorCode::invalid_argument, "dataset statistics: " + what);
  };
  const auto& [mean, std] = statistics.channels;
  if (mean.size() != std.size() || (!mean.empty() && !std::cmp_equal(mean.size(), spec.channels))) {
    fail("mean and std need one number for each of the " + std::to_string(spec.channels) +
         " channels");
  }
  const auto is_number = [](double value) { return std::isfinite(value); };
  if (!std::all_of(mean.begin(), mean.end(), is_number) ||
      !std::all_of(std.begin(), std.end(), is_number)) {
    fail("mean and std must be finite");
  }
  const auto& counts = statistics.class_counts;
  if (!counts.empty() && !spec.class_names.empty() && counts.size() != spec.class_names.size()) {
    fail(std::to_string(counts.size()) + " class counts for " +
         std::to_string(spec.class_names.size()) + " classes");
  }
  // More than readers take would be noticed when the file is read back, after all the work.
  if (const std::int64_t most = h5::max_classes(spec.num_samples);
      std::cmp_greater(counts.size(), most)) {
    fail("there are more than " + std::to_string(most) + " class counts");
  }
  if (std::any_of(counts.begin(), counts.end(),
                  [&](std::int64_t n) { return n < 0 || n > spec.num_samples; })) {
    fail("class counts must lie between 0 and the number of samples");
  }
  const auto& within = statistics.mean_picture_std;
  if ((!within.empty() && !std::cmp_equal(within.size(), spec.channels)) ||
      !std::all_of(within.begin(), within.end(), is_number)) {
    fail("mean_picture_std needs one finite number for each of the " +
         std::to_string(spec.channels) + " channels");
  }
  if (statistics.source_sizes && !h5::are_possible(*statistics.source_sizes, spec.num_samples)) {
    fail("source sizes contradict each other or the number of samples");
  }
  if (statistics.source_sizes &&
      std::cmp_greater(statistics.source_sizes->most_frequent.size(), h5::kMaxEntries / 3)) {
    fail("there are more than " + std::to_string(h5::kMaxEntries / 3) + " source sizes");
  }
}

}  // namespace chunkio::write
