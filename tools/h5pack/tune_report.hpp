/// What `h5pack tune` found out, before it becomes text or JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <chunkio/dataset.hpp>
#include <chunkio/disk_limit.hpp>
#include <chunkio/throughput.hpp>
#include <chunkio/tuning.hpp>

namespace h5pack {

/// The images that are to be trained with.
struct TunedSource {
  std::string path = {};
  /// "hdf5", the command that packs it ("folder", ...), or "planned": only sizes are known.
  std::string kind = {};
  /// Options of that command that were given, each with a blank in front; of a file: of repack.
  std::string options = {};
  chunkio::OpenOptions open = {};  ///< Of a file.
  bool output_is_folder = false;
  std::string split = {};  ///< Of a source with several: the largest, which is looked at.
  std::int64_t num_samples = 0;
  std::int64_t height = 0, width = 0, channels = 0;
  std::int64_t row_bytes = 0;                               ///< Of labels and fields of a sample.
  std::optional<chunkio::StoredGroups> stored = {};         ///< Of a file.
  std::int64_t stored_bytes = 0;                            ///< Likewise.
  bool filtered = false;                                    ///< Likewise.
  bool several_files = false;                               ///< Shards.
  std::optional<chunkio::Hdf5Reads> random_h5py = {};       ///< Of a chunked file: random order and
                                                            ///< the default cache of HDF5 1.x.
  std::optional<chunkio::Hdf5Reads> chunk_order_h5py = {};  ///< Chunk order, recommended cache.

  [[nodiscard]] std::int64_t sample_bytes() const noexcept { return height * width * channels; }
};

/// `h5pack tune`.
struct TuneReport {
  TunedSource source = {};
  std::string disk_origin = {};  ///< "measured", "profile" or "assumed".
  std::string disk_name = {};    ///< Of a profile.
  std::string disk_method = {};  ///< Of a measurement, or where the profile's figures are from.
  chunkio::MachineRates rates = {};
  std::int64_t memory_bytes = 0;
  std::int64_t cache_bytes = 0;
  std::int64_t batch_size = 0;
  double step_seconds = 0;

  chunkio::Tuning packed = {};                    ///< Packed anew, in the chunks advised.
  std::optional<chunkio::Tuning> as_stored = {};  ///< Of a file as it is.
  /// False: the file is good as it is, and the advice is `as_stored`.
  bool pack = true;

  // To paste; empty where there is nothing to do.
  std::string pack_line = {};
  std::string cpp_line = {};
  std::string python_line = {};
  std::string h5py_line = {};
  std::vector<std::string> notes = {};

  [[nodiscard]] const chunkio::Tuning& advice() const { return pack ? packed : *as_stored; }
};

[[nodiscard]] std::string tune_text(const TuneReport& report, bool colour);
[[nodiscard]] std::string tune_json(const TuneReport& report);

}  // namespace h5pack
