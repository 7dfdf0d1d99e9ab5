/// The structure of a dataset file, without its pixels.
///
/// Fixed dimensions, early allocation, no filter and the 1.10 format make libhdf5 keep all chunks
/// in one run (the implicit index), so pixels can later be written by position, without libhdf5.
/// Metadata of that format carries checksums. What opens the file takes Library::lock().
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include <chunkio/chunk_layout.hpp>
#include <chunkio/dataset_writer.hpp>

namespace chunkio::h5 {

struct SkeletonOptions {
  std::int64_t chunk_samples = 0;
  std::string creator;
  std::string uuid;
  ChunkCacheSettings cache;  ///< Recommended to readers.
};

/// Checks everything in `spec` that a file depends on.
/// \throws Error invalid_argument.
void validate(const DatasetSpec& spec);

/// Bytes that the file takes beside the pixels, at most.
[[nodiscard]] std::int64_t skeleton_bytes(const DatasetSpec& spec, std::int64_t num_chunks);

/// Writes everything but pixels, digests and statistics into the empty file `fd`. Does not sync.
/// \throws Error hdf5_failed, io_failed, no_space.
void write_skeleton(int fd, const std::string& path, const DatasetSpec& spec,
                    const SkeletonOptions& options);

/// What is known at the end.
struct Completion {
  std::optional<DatasetStatistics> statistics = {};
  std::span<const std::uint64_t> chunk_digests = {};
  /// Absent, or the specification with fewer samples: the pictures are cut to them, which leaves
  /// all chunks where they are, and all fields are written anew.
  const DatasetSpec* shortened = nullptr;
};

/// Adds what is known at the end. Does not sync. A kill or an error inside leaves a file that
/// libhdf5 may not open. \throws Error hdf5_failed, io_failed, no_space.
void complete_file(int fd, const std::string& path, const Completion& completion);

}  // namespace chunkio::h5
