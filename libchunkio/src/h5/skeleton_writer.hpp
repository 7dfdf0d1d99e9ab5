/// The structure of a dataset file, without its pixels.
///
/// Fixed dimensions, early allocation, no filter and the 1.10 format make libhdf5 keep all chunks
/// in one run (the implicit index), so pixels can later be written by position, without libhdf5.
/// Metadata of that format carries checksums. Both functions take Library::lock().
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

/// Overwrites the file `path` with everything but pixels, digests and statistics.
/// \throws Error hdf5_failed, no_space.
void write_skeleton(const std::string& path, const DatasetSpec& spec,
                    const SkeletonOptions& options);

/// Adds what is known at the end. A kill inside leaves a file that libhdf5 may not open.
/// \throws Error hdf5_failed, no_space.
void write_final_attributes(const std::string& path,
                            const std::optional<DatasetStatistics>& statistics,
                            std::span<const std::uint64_t> chunk_digests);

/// Whether libhdf5 locks the files it writes although we ask it not to: the environment variable
/// HDF5_USE_FILE_LOCKING says so, or the version is too old to be asked. Its lock and ours exclude
/// each other.
[[nodiscard]] bool library_locks_files();

}  // namespace chunkio::h5
