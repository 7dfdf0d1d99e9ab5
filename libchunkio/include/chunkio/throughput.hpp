/// How many images a second a way of reading can deliver, from what disk, memory and processors do
/// alone: arithmetic, before anything is read.
///
/// Data flow: rates, measured or of a DiskProfile -> predict_throughput() -> which settings to use
/// (h5pack tune), what a change would bring.
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
/// Pure functions; thread-safe.
#pragma once

#include <cstdint>

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
  /// Bytes of pixels one thread gains from filtered chunks in one second; > 0.
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
  /// What limits; Bound::consumer if the loader is fast enough.
  Bound bound = Bound::none;
  /// How often each image would have to be used for the consumer never to wait, at most 10^15; 1
  /// if the loader is fast enough, or the consumer takes no time.
  std::int64_t echo = 1;
};

/// \throws Error invalid_argument if a number is outside of what is said above.
CHUNKIO_EXPORT Throughput predict_throughput(const MachineRates& rates, const ReadingPlan& plan);

}  // namespace chunkio
