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
#include <vector>

#include <chunkio/chunk_layout.hpp>
#include <chunkio/dataset_writer.hpp>

#include "h5/deferred_writes.hpp"
#include "h5/handle.hpp"

namespace chunkio::h5 {

struct SkeletonOptions {
  std::int64_t chunk_samples = 0;
  std::string creator;
  std::string uuid;
  ChunkCacheSettings cache;  ///< Recommended to readers.
  ChunkFilter filter = {};
};

/// How files are created and opened for writing: the 1.10 format, and no write but through
/// `writes`. \throws Error hdf5_failed.
[[nodiscard]] ListId file_access(DeferredWrites& writes, const std::string& path);

/// Checks everything in `spec` that a file depends on.
/// \param planned_samples  of a file that is shortened: how many it was to have.
/// \throws Error invalid_argument.
void validate(const DatasetSpec& spec, std::int64_t planned_samples = 0);

/// Bytes that the file takes beside the pixels, at most.
[[nodiscard]] std::int64_t skeleton_bytes(const DatasetSpec& spec);

/// Writes everything but pixels, digests and statistics into the empty file `fd`. Does not sync.
/// \pre no filter: libhdf5 has to place chunks of unknown size (FilteredFile).
/// \throws Error hdf5_failed, io_failed, no_space.
void write_skeleton(int fd, const std::string& path, const DatasetSpec& spec,
                    const SkeletonOptions& options);

/// What is known at the end.
struct Completion {
  std::optional<DatasetStatistics> statistics = {};
  /// Of the pixels of each row; the rows of all fields are chained on, as they are in the file.
  std::span<std::uint64_t> row_digests = {};
  /// Absent, or the specification with fewer samples: the images are cut to them, which leaves
  /// all chunks where they are, and all fields are written anew.
  const DatasetSpec* shortened = nullptr;
  KeptBytes kept = {};  ///< An error if libhdf5 wants to write there.
};

/// Adds what is known at the end. Does not sync. A kill or an error inside leaves a file that
/// libhdf5 may not open. \param fields  of the specification; their values do not matter.
/// \throws Error hdf5_failed, io_failed, no_space.
void complete_file(int fd, const std::string& path, std::span<const FieldData> fields,
                   const Completion& completion);

/// A file with filtered chunks, from its creation to its end: libhdf5 finds their places and keeps
/// their index, so it has the file open all the time. Its metadata is held in memory (some tens of
/// bytes a chunk) and written at the end; until then nobody can open the file. Not thread-safe.
class FilteredFile {
 public:
  /// Creates everything but pixels, digests and statistics in the empty file `fd`, which must
  /// outlive this, as `path` must. \throws Error hdf5_failed, io_failed, no_space.
  FilteredFile(int fd, const std::string& path, const DatasetSpec& spec,
               const SkeletonOptions& options);

  /// Writes a chunk as it is to be stored. \param mask  filters that were left out, as HDF5 has it.
  /// \throws Error hdf5_failed, io_failed, no_space.
  void write_chunk(std::int64_t chunk, std::uint32_t mask, std::span<const std::byte> stored);

  /// Adds what is known at the end and writes all metadata. To be called once. Does not sync.
  /// \pre what is called shortened has as many samples as before, and other values of its fields.
  /// \throws Error hdf5_failed, io_failed, no_space.
  void finish(const Completion& completion);

 private:
  const std::string& path_;
  std::uint64_t chunk_samples_;
  std::vector<FieldData> fields_;  // Without their values.
  DeferredWrites writes_;          // Destroyed when the file is closed.
  FileId file_;
  DatasetId images_;
};

}  // namespace chunkio::h5
