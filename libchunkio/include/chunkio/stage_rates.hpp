/// What disk, decoding and copying do each alone, on this machine and for this file.
///
/// A running pipeline shows only how fast it is as a whole, and how busy its stages are; what a
/// stage could do that waits for another one shows when it works alone.
///
///     const chunkio::StageRates alone = chunkio::measure_stages(loader, 0.5);
///     const chunkio::Diagnosis found = chunkio::diagnose(loader.stats(), alone);
#pragma once

#include <cstdint>
#include <string>

#include <chunkio/diagnosis.hpp>
#include <chunkio/export.hpp>
#include <chunkio/loader.hpp>

namespace chunkio {

/// Bytes a second; 0 where a stage does not occur, or took no time that could be measured.
struct StageRates {
  /// Stored bytes from the disk, bypassing the page cache, by requests as large as a row group at
  /// random places of the file, from all threads of the loader.
  double disk_bytes_per_second = 0;
  /// The same by requests of `large_request_bytes`, which are hardly delayed by latency; 0 where
  /// the file or row groups do not allow for requests that are much larger than `request_bytes`.
  double large_bytes_per_second = 0;
  /// Of a request of a few KiB at a random place, alone: the latency.
  double request_seconds = 0;
  /// Why the disk was not measured, a clause: images lie in other files. Empty if it was.
  std::string no_disk = {};
  /// False: the file system lets nobody bypass the page cache, so the rate may be that of memory.
  bool disk_is_direct = false;
  /// Share of the file that the page cache holds, 0..1, by samples: what is there needs no disk. 0
  /// if the disk was not measured.
  double cached_share = 0;
  /// Bytes of pixels whose filters one thread undoes (or whose digests it checks).
  double decode_bytes_per_second = 0;
  /// Bytes of pixels that one thread brings from where they are read to a batch.
  double copy_bytes_per_second = 0;
  /// The same of all threads of the loader at the same time, decoding included: what the loader
  /// does where no disk has to be waited for.
  double processor_bytes_per_second = 0;
  /// Of a request to the disk: a row group as it is stored, but 64 KiB at least and 16 MiB at most.
  std::int64_t request_bytes = 0;
  std::int64_t large_request_bytes = 0;
  double stored_bytes_per_sample = 0;  ///< Of images, after filters; on average.
  std::int64_t num_threads = 0;        ///< Of the loader.
  /// Of these, how many decode or copy at the same time: one CPU each, and one through libhdf5.
  std::int64_t busy_threads = 0;
};

/// Measures, for about `seconds` each, in the calling thread and others; up to 64 MiB of memory and
/// a buffer for each thread. What a slower disk (LoaderOptions::disk_limit) would answer later than
/// that is computed, not waited for. Reads the file; never drops it from the page cache, but what
/// it reads for decoding and copying stays there. \param loader   whose file and options (threads,
/// source, verify) are meant. Not used: best not
///                 started, so that it does not read meanwhile.
/// \param seconds  above 0, at most 60.
/// \throws Error invalid_argument, out_of_resources, and what reading the file throws.
/// Blocks. Safe to call from any thread.
[[nodiscard]] CHUNKIO_EXPORT StageRates measure_stages(const Loader& loader, double seconds);

/// As LoaderStats::diagnosis(), but what a cure brings is computed from what the stages do alone,
/// where that is known. Pure; thread-safe.
/// \param alone  of the loader that `stats` are of.
[[nodiscard]] CHUNKIO_EXPORT Diagnosis diagnose(const LoaderStats& stats, const StageRates& alone);

}  // namespace chunkio
