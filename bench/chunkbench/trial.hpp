/// One trial of a cell: images delivered and timed, cold or warm, by a chunkio source or by one
/// H5Dread a sample.
///
/// A trial is as many epochs as it takes to be long enough, each over the same rows. Where
/// the dataset has more rows than a trial should deliver, these are such as the beginning of an
/// epoch over all of it would visit: whole chunks drawn from all of the file in chunk_shuffled
/// order, single rows drawn from all of it in random order, the first rows in sequential order. So
/// no unused bytes are read ahead, and what is counted is exact.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <chunkio/dataset.hpp>
#include <chunkio/disk_limit.hpp>
#include <chunkio/epoch_order.hpp>

#include "chunkbench/results.hpp"

namespace bench {

/// The images in chunks of one size.
struct ChunkFile {
  std::string path = {};
  chunkio::DatasetInfo info = {};
};

struct TrialSettings {
  bool cold = true;
  std::int64_t batch_size = 256;
  std::uint64_t seed = 0;
  std::int64_t images = 0;  ///< Delivered by an epoch of a trial at least, if there are as many.
  std::int64_t random_images = 0;  ///< The same in random order, where each costs alike.
  /// Timed seconds that a trial has at least; 0: one epoch.
  double seconds = 0;
  /// Everything is read as if from this slower disk.
  std::optional<chunkio::DiskLimit> limit = {};
  /// Bytes that this process and its page cache may take, if that is limited.
  std::optional<std::int64_t> memory_limit = {};
};

[[nodiscard]] inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// A trial that takes longer is cut in the middle of an epoch, where that is fair: one H5Dread a
/// sample, and random order.
inline constexpr double kLongestTrial = 10;

/// What an epoch reads, as the model says or as it was counted. What cannot be told is absent.
struct Loads {
  std::optional<double> chunk_loads = {};  ///< Of one epoch of a trial.
  std::optional<double> hit_rate = {};
  std::optional<double> read_amplification = {};
};

struct Trial {
  Round round = {};
  Loads counted = {};
  std::optional<StageSeconds> stages = {};  ///< Absent for h5dread, which has none.
  /// Cut in the middle: the loader read ahead for batches that nobody waited for.
  bool cut = false;
};

/// The rows that an epoch of a trial delivers; absent: all.
/// \param chunk_samples  rows of a chunk.
[[nodiscard]] std::optional<chunkio::RowSelection> rows_of_trial(chunkio::OrderMode order,
                                                                 std::int64_t num_samples,
                                                                 std::int64_t chunk_samples,
                                                                 const TrialSettings& settings);

/// What the model says of the cell: of h5dread, plan/cache_simulator; of chunkio's sources, the
/// plan of the epoch.
[[nodiscard]] Loads predict(const Cell& cell, const ChunkFile& file, const TrialSettings& settings);

/// Blocks. Polls h5pack::StopSignal.
/// \throws chunkio::Error cancelled; io_failed if the file cannot be put out of the page cache;
///         and whatever reading throws, also std::runtime_error.
[[nodiscard]] Trial take_trial(const Cell& cell, const ChunkFile& file,
                               const TrialSettings& settings);

/// Adds up a hash of (row, pixels) over the first rows of the file, as the cell's source delivers
/// them. Equal for all that deliver the same images. \throws as take_trial().
[[nodiscard]] std::uint64_t digest_of_first_rows(const Cell& cell, const ChunkFile& file,
                                                 std::int64_t num_rows);

}  // namespace bench
