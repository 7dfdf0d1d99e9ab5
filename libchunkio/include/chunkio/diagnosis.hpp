/// What a pipeline waits for, what shows it, and what would help: answers to "why does my GPU
/// wait?".
///
/// Data flow: counters of a Loader or DeviceLoader -> LoaderStats::diagnosis(),
/// DeviceStats::diagnosis() -> a person, or h5pack doctor. Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <chunkio/export.hpp>

namespace chunkio {

/// The stage that is waited for. Never renumber.
enum class Bound : std::uint8_t {
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

CHUNKIO_EXPORT std::string_view to_string(Bound bound) noexcept;

/// Something that could be changed, and what it would bring.
struct Cure {
  /// As it is written in a program ("num_threads = 8"), or empty if it is no option.
  std::string option = {};
  std::string text = {};  ///< What to do: a sentence.
  /// Predicted: images a second to the consumer, and the share of the time in which the consumer
  /// would still wait (0..1).
  double images_per_second = 0;
  double stall = 0;
};

struct Diagnosis {
  Bound bound = Bound::none;
  double stall = 0;  ///< Share of the time in which the consumer waited, 0..1.
  /// The run took less than half a second: too little to judge, as the first sentence says.
  bool too_short = false;
  /// Sentences: what was measured and why that names the bound. Empty for Bound::none.
  std::vector<std::string> evidence = {};
  /// Best first: by predicted images a second, and among equals those that cost least. Empty if
  /// nothing that is known would help.
  std::vector<Cure> cures = {};

  /// A sentence or two: the first evidence, and the best cure unless the run was too short. Pure.
  [[nodiscard]] CHUNKIO_EXPORT std::string summary() const;
};

}  // namespace chunkio
