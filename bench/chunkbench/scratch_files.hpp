/// The files that are measured: the same images in chunks of different sizes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "chunkbench/results.hpp"
#include "chunkbench/sweep_options.hpp"
#include "chunkbench/trial.hpp"
#include "harness/scratch_folder.hpp"

namespace bench {

/// A chunk size that was asked for, and what becomes of it.
struct ChunkSize {
  std::int64_t bytes = 0;    ///< As asked for; of one sample, if that is larger.
  std::int64_t samples = 0;  ///< Whole ones.

  friend bool operator==(const ChunkSize&, const ChunkSize&) = default;
};

/// Chunks of whole samples. Sizes below one sample become one; two that come to the same number of
/// samples are measured once. \param notes  gets a sentence for each size that is not as asked for.
/// \throws chunkio::Error invalid_argument: a chunk beyond what HDF5 or a filter can.
[[nodiscard]] std::vector<ChunkSize> choose_chunks(std::span<const std::int64_t> bytes,
                                                   std::int64_t sample_bytes,
                                                   std::int64_t num_samples, bool filtered,
                                                   std::vector<std::string>& notes);

/// The images that a sweep is about.
class Images {
 public:
  /// Opens options.file, or plans made-up images. Reads three of them at most.
  /// \throws chunkio::Error as Dataset::open(); invalid_argument (an impossible size).
  explicit Images(const SweepOptions& options);

  [[nodiscard]] const SweepDataset& description() const noexcept { return description_; }
  [[nodiscard]] std::int64_t num_samples() const noexcept { return description_.shape[0]; }
  [[nodiscard]] std::int64_t sample_bytes() const noexcept { return sample_bytes_; }

  /// Paths of those that are read; none of made-up images.
  [[nodiscard]] std::vector<std::string> files() const;

  /// Writes them in chunks of `chunk_samples`. Polls StopSignal.
  /// \throws chunkio::Error cancelled, no_space, and whatever reading and writing throws; nothing
  ///         is left then.
  void write(const std::string& path, std::int64_t chunk_samples,
             const SweepOptions& options) const;

 private:
  std::shared_ptr<const chunkio::Dataset> dataset_;  ///< None: made up.
  SweepDataset description_;
  std::int64_t sample_bytes_ = 0;
};

/// The files, in a folder of their own that is gone with the object.
class ScratchFiles {
 public:
  /// Blocks until all are written. \throws chunkio::Error no_space (early, if it can be seen that
  /// they do not fit), and as Images::write(); nothing is left then.
  ScratchFiles(const Images& images, std::span<const ChunkSize> chunks,
               const SweepOptions& options);

  /// In the order of the chunk sizes.
  [[nodiscard]] std::span<const ChunkFile> files() const noexcept { return files_; }

 private:
  chunkio::test::ScratchFolder folder_;
  std::vector<ChunkFile> files_;
};

}  // namespace bench
