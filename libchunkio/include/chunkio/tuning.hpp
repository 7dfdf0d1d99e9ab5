/// Which chunks, window, threads and memory suit a dataset, a machine and a training step.
///
/// Data flow: what is to be read, what the machine does (throughput.hpp) -> tune() -> settings for
/// the packer, the Loader and HDF5's own cache, and what they promise.
///
/// Method. Chunk sizes from 256 KiB to 64 MiB, in powers of two, are compared by what
/// predict_throughput() says of the first epoch, the one from the disk. Among those within 3 % of
/// the best the one nearest to the default is taken, of two the smaller: a size that only helps a
/// little costs mixing or requests elsewhere. A window holds 256 MiB, or what the memory allows,
/// and 8 chunks at least: chunks that are too large for that are only taken if all are.
///
/// Pure functions but for available_memory(); thread-safe.
#pragma once

#include <cstdint>
#include <optional>

#include <chunkio/chunk_layout.hpp>
#include <chunkio/export.hpp>
#include <chunkio/loader.hpp>
#include <chunkio/throughput.hpp>

namespace chunkio {

/// How images lie in an existing file.
struct StoredGroups {
  std::int64_t samples = 1;        ///< Of a row group: of a chunk, if chunks hold whole samples.
  std::int64_t num_requests = 1;   ///< Chunks that hold these samples.
  std::int64_t request_bytes = 0;  ///< Of one of them as it is stored; >= 1.
  std::int64_t decoded_bytes = 0;  ///< Of all of them, before filters; 0: they have none.
};

/// How `dataset` lies in its file, as Loader reads it: unfiltered chunks of more than half a window
/// and contiguous data in parts of 4 MiB.
CHUNKIO_EXPORT StoredGroups stored_groups(const DatasetInfo& dataset);

struct TuningTask {
  std::int64_t num_samples = 0;   ///< >= 1.
  std::int64_t sample_bytes = 0;  ///< Of one image in memory; >= 1.
  std::int64_t row_bytes = 0;     ///< Of labels and other fields of one sample.
  /// A file that stays as it is; absent: images are to be packed, without filters.
  std::optional<StoredGroups> stored = {};
  /// Bytes the loader may allocate; >= 1.
  std::int64_t memory_bytes = std::int64_t{4} << 30;
  /// Bytes that the page cache can hold beside that; a larger file is read from the disk in each
  /// epoch, bypassing the page cache.
  std::int64_t cache_bytes = 0;
  std::int64_t batch_size = 256;  ///< >= 1.
  double step_seconds = 0;        ///< Of a training step; 0: unknown.
};

/// Settings and what they promise.
struct Tuning {
  std::int64_t chunk_samples = 0;  ///< `stored->samples` if that was given.
  std::int64_t chunk_bytes = 0;    ///< Of pixels.
  // Of LoaderOptions.
  std::int64_t window_bytes = 0;
  std::int64_t num_threads = 0;
  std::int64_t prefetch_depth = 0;
  std::int64_t memory_budget = 0;
  Resident resident = Resident::none;
  /// For h5py and C programs that read in chunk order.
  ChunkCacheSettings cache = {};

  Throughput first_epoch = {};   ///< From the disk.
  Throughput later_epochs = {};  ///< From memory, if there is enough.
  /// Of the bytes of the disk's bandwidth, what the first epoch reads; 0 without a disk.
  double disk_share = 0;
};

/// \throws Error invalid_argument if a number is outside of what is said above; out_of_resources,
///         naming the minimum, if memory_bytes is too small for any window.
CHUNKIO_EXPORT Tuning tune(const TuningTask& task, const MachineRates& rates);

/// Bytes of memory that this process can use: what the system has available now, or less where a
/// control group, such as a container's, limits it. The largest number there is if nothing can be
/// found out. The one function here that asks the system (proc(5), cgroups(7)).
[[nodiscard]] CHUNKIO_EXPORT std::int64_t available_memory();

/// What HDF5's chunk cache makes of samples that are read one by one.
struct Hdf5Reads {
  double hit_rate = 0;            ///< Share of chunk visits that read nothing from the file.
  double read_amplification = 0;  ///< Bytes read from the file for each byte delivered.
};

/// Predicts them for a program that reads one sample with each H5Dread, as h5py does for
/// `dataset[i]`, by simulating the cache for up to 100,000 reads of an epoch.
/// \param stored_bytes  of all chunks, after filters.
/// \param window_bytes  see OrderOptions; of chunk_shuffled order.
/// \throws Error invalid_argument (not chunked, or impossible sizes), out_of_resources (too many
///         chunks to simulate).
CHUNKIO_EXPORT Hdf5Reads predict_hdf5_reads(const StoredLayout& stored, std::int64_t stored_bytes,
                                            const ChunkCacheSettings& settings, OrderMode order,
                                            std::int64_t window_bytes = kDefaultWindowBytes);

}  // namespace chunkio
