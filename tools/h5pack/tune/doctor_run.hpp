/// Measures each stage of reading alone, then all together, for `h5pack doctor`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <chunkio/bottleneck.hpp>
#include <chunkio/dataset.hpp>
#include <chunkio/loader.hpp>

#include "cli/disk_options.hpp"

namespace h5pack {

struct DoctorOptions {
  std::string file = {};
  chunkio::OpenOptions open = {};
  chunkio::LoaderOptions loader = {};
  cli::DiskOptions disk = {};  ///< For loader.io.disk_limit.
  double step_ms = 0;          ///< Of the consumer, for a batch.
  double seconds = 2;          ///< That each run of all stages takes, about.
  std::int64_t device = 0;     ///< CUDA device.
  bool no_device = false;      ///< Stay on the host.
};

/// Batches that crossed to a device.
struct BusReport {
  double bytes_per_second = 0;  ///< While copies were under way.
  bool pinned = false;
};

struct DoctorReport {
  chunkio::DatasetInfo dataset = {};
  chunkio::LoaderOptions options = {};  ///< As the loader has resolved them.
  chunkio::SourceKind source = chunkio::SourceKind::automatic;
  std::string source_reason = {};
  double step_ms = 0;

  chunkio::StageRates alone = {};
  std::optional<BusReport> bus = {};
  std::string no_bus = {};  ///< Why there is none, as a clause; empty if there is one.

  double loader_images_per_second = 0;  ///< All stages, and a consumer that takes no time.
  double images_per_second = 0;         ///< With the consumer.
  double seconds = 0;                   ///< That the run with the consumer took.
  chunkio::BottleneckReport found = {};

  [[nodiscard]] double sample_bytes() const { return static_cast<double>(dataset.sample_bytes()); }
  /// What each stage could do alone, in images a second; nothing where it does not occur.
  [[nodiscard]] std::optional<double> disk_images_per_second() const;
  [[nodiscard]] std::optional<double> decode_images_per_second() const;
  [[nodiscard]] std::optional<double> copy_images_per_second() const;
  [[nodiscard]] std::optional<double> bus_images_per_second() const;
  [[nodiscard]] double consumer_images_per_second() const;
};

/// Leaves nothing behind, so a signal may end it anywhere.
/// \throws chunkio::Error.
[[nodiscard]] DoctorReport run_doctor(const DoctorOptions& options, bool quiet);

}  // namespace h5pack
