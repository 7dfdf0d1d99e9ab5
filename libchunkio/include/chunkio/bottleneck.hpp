/// Why a training program waits for data: the bottleneck, the evidence, and what would help.
///
///     const chunkio::BottleneckReport report = loader.stats().bottleneck();
///     std::puts(report.summary().c_str());
///     // What the stages do alone, for a closer look at what each suggestion would bring:
///     const chunkio::StageRates alone = chunkio::measure_stages(loader, 0.5);
///     const auto closer = chunkio::find_bottleneck(loader.stats(), alone);
///
/// Data flow: counters of a Loader or DeviceLoader -> LoaderStats::bottleneck() or
/// DeviceStats::bottleneck() -> a person, or h5pack doctor. Plain values and thread-safe functions;
/// only measure_stages() reads and blocks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <chunkio/export.hpp>

namespace chunkio {

class Loader;
struct LoaderStats;

/// The stage that is waited for. Never renumber.
enum class Bottleneck : std::uint8_t {
  none = 0,      ///< Nothing was delivered yet.
  disk = 1,      ///< Storage.
  decode = 2,    ///< Undoing filters, checking digests.
  copy = 3,      ///< Bringing rows to their places: memory bandwidth.
  plan = 4,      ///< Computing the order.
  bus = 5,       ///< The copy to a device.
  consumer = 6,  ///< The program that takes the batches: everything before is fast enough.
  /// Too few batch buffers: the consumer waits for batches, then workers for buffers.
  buffers = 7,
  kernel = 8,  ///< Normalising on the device.
};

CHUNKIO_EXPORT std::string_view to_string(Bottleneck bottleneck) noexcept;

/// Something that could be changed, and what it would bring.
struct Suggestion {
  /// As it is written in a program ("num_threads = 8"), or empty if it is no option.
  std::string option = {};
  std::string text = {};  ///< What to do: a sentence.
  /// Predicted: images a second to the consumer, and the share of the time in which the consumer
  /// would still wait (0..1).
  double images_per_second = 0;
  double stall = 0;
};

/// What a report says of a run.
struct BottleneckReport {
  Bottleneck bottleneck = Bottleneck::none;
  double stall = 0;  ///< Share of the time in which the consumer waited, 0..1.
  /// The run took less than half a second: too little to judge, as the first sentence says.
  bool too_short = false;
  /// Sentences: what was measured and why that names the bottleneck. Empty for Bottleneck::none.
  std::vector<std::string> evidence = {};
  /// Best first: by predicted images a second, and among equals those that cost least. Empty if
  /// nothing that is known would help.
  std::vector<Suggestion> suggestions = {};

  /// A sentence or two: the first evidence, and the best suggestion unless the run was
  /// too short. Pure.
  [[nodiscard]] CHUNKIO_EXPORT std::string summary() const;
};

/// The report as a JSON object on one line, without its end. Keys are named after the members and
/// stay; more may come. Pure.
[[nodiscard]] CHUNKIO_EXPORT std::string to_json(const BottleneckReport& report);

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

/// As LoaderStats::bottleneck(), but what a suggestion brings is computed from what the stages do
/// alone, where that is known. Pure; thread-safe. \param alone  of the loader that `stats` are of.
[[nodiscard]] CHUNKIO_EXPORT BottleneckReport find_bottleneck(const LoaderStats& stats,
                                                              const StageRates& alone);

}  // namespace chunkio
