/// The result of `h5pack tune`, and its text and JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <chunkio/tuning.hpp>

#include "h5pack/tune/tuned_source.hpp"

namespace h5pack {

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
