/// Settings that suit a dataset, a machine and a training step, and findings on how a dataset is
/// stored.
///
///     const chunkio::TuningTask task{.num_samples = 200'000, .sample_bytes = 218 * 178 * 3};
///     const chunkio::Tuning tuning = chunkio::tune(task, {.disk = chunkio::disk_profile("hdd")});
///     std::printf("%.0f images/s\n", tuning.first_epoch.images_per_second);
///     for (const std::string& advice : chunkio::inspect(dataset).advice)
///     std::puts(advice.c_str());
///
/// Data flow: rates, measured or of a DiskProfile -> predict_throughput() -> tune() -> settings for
/// the packer, the Loader and HDF5's own cache, and what they promise. inspect() reads labels and
/// available_memory() asks the system; all else is pure. Thread-safe.
///
/// Model. A worker takes one row group after the other: it waits for a request of s stored bytes,
/// undoes filters and copies rows, which keeps a processor busy for c seconds. (Where chunks cut
/// samples, for several requests, one after the other unless they were read ahead.) The disk
/// answers a request after L + s / B seconds; latencies of q requests overlap, bytes share the
/// bandwidth B (DiskLimit). With T workers, P processors and R requests under way, the groups a
/// second are the least of
///
///     disk       min(1 / (s / B), min(q, R) / (L + s / B))    requests waiting for each other
///     processor  min(T, P) / c                                decoding and copying
///     memory     M / g                                        bytes all workers can copy
///     workers    T / (L + s / B + c)                          only without read-ahead (R = T)
///
/// and of what the bus to a device and the consumer take. These are the asymptotic bounds of
/// operational analysis (Denning and Buzen, "The Operational Analysis of Queueing Network Models",
/// ACM Computing Surveys 10:3, 1978): a real pipeline comes near them where buffers are deep, which
/// is what a ring of two windows is for, and stays below where two bounds are nearly equal.
///
/// Choice of a chunk size. Chunk sizes from 256 KiB to 64 MiB, in powers of two, are compared by
/// what predict_throughput() says of the first epoch, the one from the disk. Among those within 3 %
/// of the best the one nearest to the default is taken, of two the smaller: a size that only helps
/// a little costs mixing or requests elsewhere. A window holds 256 MiB, or what the memory allows,
/// and 8 chunks at least: chunks that are too large for that are only taken if all are.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <chunkio/chunk_layout.hpp>
#include <chunkio/dataset.hpp>
#include <chunkio/disk_limit.hpp>
#include <chunkio/export.hpp>
#include <chunkio/loader.hpp>

namespace chunkio {

/// What the parts of a machine do, each alone. The defaults for memory are those of the machine of
/// bench/RESULTS.md, rounded down; that for decoding is what libdeflate does on the like of it.
struct MachineRates {
  /// The disk; all zero if nothing waits for one, as when everything is in the page cache.
  DiskLimit disk = {};
  /// Bytes one thread brings from memory to batches in one second; > 0.
  double copy_bytes_per_second = 14e9;
  /// The same of all threads together; 0: as many times that of one as there are threads.
  double memory_bytes_per_second = 29e9;
  /// Bytes of pixels one thread gains from filtered chunks, or from encoded images, in one second;
  /// > 0.
  double decode_bytes_per_second = 0.35e9;
  /// Bytes a second to a device, e.g. a GPU; 0: there is none, or it does not limit.
  double bus_bytes_per_second = 0;
  /// What reading a row group and placing a row take beside copying, in seconds.
  double group_seconds = 20e-6;
  double row_seconds = 100e-9;
  std::int64_t num_cpus = 1;  ///< >= 1.
};

/// What is read how, and for whom.
struct ReadingPlan {
  std::int64_t sample_bytes = 0;       ///< Of one image in memory; >= 1.
  std::int64_t samples_per_group = 1;  ///< Delivered of each row group that is read; >= 1.
  /// Bytes of a request: of a chunk as it is stored, of a sample if those are read one by one;
  /// >= 1.
  std::int64_t request_bytes = 0;
  /// Requests for a row group: 1, or the chunks that a sample is cut into.
  std::int64_t requests_per_group = 1;
  /// Bytes of pixels that are decoded for a row group; 0: no filter.
  std::int64_t decoded_bytes = 0;
  /// Each request begins where the last one ended, as in sequential order.
  bool adjacent = false;
  std::int64_t num_threads = 1;  ///< Workers; >= 1.
  /// Bytes asked for ahead of the workers; 0: each worker waits for its own request.
  std::int64_t read_ahead_bytes = std::int64_t{64} << 20;
  /// The same bypassing the page cache, where they need memory of their own.
  static constexpr std::int64_t kDirectReadAheadBytes = std::int64_t{8} << 20;
  std::int64_t batch_size = 256;  ///< >= 1.
  double step_seconds = 0;        ///< The consumer's time for a batch; 0: it takes none.
};

/// A prediction. All rates in images a second; infinite where a stage takes no time.
struct Throughput {
  double images_per_second = 0;         ///< Delivered to the consumer.
  double loader_images_per_second = 0;  ///< What the loader could deliver.
  double disk_images_per_second = 0;
  double decode_images_per_second = 0;  ///< Were workers to do nothing else.
  double copy_images_per_second = 0;    ///< Likewise.
  double bus_images_per_second = 0;
  double consumer_images_per_second = 0;
  /// Share of the time in which the consumer waits, 0..1; 1 if it takes no time itself.
  double stall = 0;
  /// What limits; Bottleneck::consumer if the loader is fast enough.
  Bottleneck bottleneck = Bottleneck::none;
  /// How often each image would have to be used for the consumer never to wait, at most 10^15; 1
  /// if the loader is fast enough, or the consumer takes no time.
  std::int64_t echo = 1;
};

/// \throws Error invalid_argument if a number is outside of what is said above.
CHUNKIO_EXPORT Throughput predict_throughput(const MachineRates& rates, const ReadingPlan& plan);

/// How images lie in an existing file.
struct StoredGroups {
  std::int64_t samples = 1;        ///< Of a row group: of a chunk, if chunks hold whole samples.
  std::int64_t num_requests = 1;   ///< Chunks that hold these samples.
  std::int64_t request_bytes = 0;  ///< Of one of them as it is stored; >= 1.
  /// Of all of them, before filters, or of the samples that encoded images become; 0: nothing is
  /// decoded.
  std::int64_t decoded_bytes = 0;
};

/// How `dataset` lies in its file, as Loader reads it: unfiltered chunks of more than half a window
/// and contiguous data in parts of 4 MiB. \pre encoded images were opened with OpenOptions::decode.
CHUNKIO_EXPORT StoredGroups stored_groups(const DatasetInfo& dataset);

struct TuningTask {
  std::int64_t num_samples = 0;   ///< >= 1.
  std::int64_t sample_bytes = 0;  ///< Of one image in memory; >= 1.
  std::int64_t row_bytes = 0;     ///< Of labels and other fields of one sample.
  /// A file that stays as it is; absent: images are to be packed, without filters.
  std::optional<StoredGroups> stored = {};
  /// Whether samples may be kept in memory: not where they are another part of an image each epoch.
  bool can_be_resident = true;
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

/// What a look at a dataset finds out beyond what its file says of itself: whether its chunking and
/// its order suit training.
struct Inspection {
  DatasetInfo dataset = {};
  /// Samples of each class (or with each attribute set): stored, or counted from the labels. Empty
  /// if neither is possible.
  std::vector<std::int64_t> class_counts = {};
  std::int64_t chunk_bytes = 0;  ///< Of a chunk before filters; 0 if the images are not chunked.
  ChunkCacheSettings cache = {};
  /// What could be better, worst first: one or two sentences each.
  std::vector<std::string> advice = {};
};

/// Plain-language findings on a chunking, worst first; empty if there is nothing to improve. Each
/// entry is one or two sentences: what is wrong, what it costs when samples are read in random
/// order, and the hint.
[[nodiscard]] CHUNKIO_EXPORT std::vector<std::string> chunking_advice(const StoredLayout& stored);

/// Reads at most 2^24 labels, and no image. Blocks on I/O. Thread-safe.
/// \throws Error hdf5_failed, corrupt_data: the labels cannot be read.
[[nodiscard]] CHUNKIO_EXPORT Inspection inspect(const Dataset& dataset);

/// What `h5pack info --json` prints, on one line, without its end. Keys are named after the members
/// and stay; more may come. Text that is not UTF-8 has U+FFFD in place of each wrong byte.
[[nodiscard]] CHUNKIO_EXPORT std::string to_json(const Inspection& inspection);

}  // namespace chunkio
