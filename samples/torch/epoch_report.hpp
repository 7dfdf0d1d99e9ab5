// What the trainers say about an epoch, as text and as JSON.
#pragma once

#include <cstdint>
#include <fstream>
#include <optional>
#include <string>

#include "options.hpp"

namespace trainer {

/// Right answers and mean loss over some images.
struct Score {
  double loss = 0;      ///< Mean of an image.
  double accuracy = 0;  ///< 0 to 1: of images, or the mean over attributes.
};

struct EpochReport {
  std::int64_t epoch = 0;
  std::int64_t images = 0;  ///< Trained on, echoed ones counted each time.
  double seconds = 0;
  double stall_seconds = 0;
  std::optional<double> gpu_percent = {};
  Score training = {};  ///< While the network changed.
  std::optional<Score> held_out = {};

  [[nodiscard]] double stall_share() const { return seconds > 0 ? stall_seconds / seconds : 0; }
};

/// Writes reports to stdout, and to Options::json one object a line.
class Reporter {
 public:
  /// \throws std::runtime_error if the JSON file cannot be opened.
  Reporter(std::string program, const Options& options, LoaderKind loader);

  /// \throws std::runtime_error if JSON cannot be written.
  void epoch(const EpochReport& report);
  /// All epochs but the first, in which much happens for the first time; that one if there are no
  /// others.
  void all();

  /// How often images would have to be used for the network never to wait: time / (time - stall),
  /// times the echo factor there is, rounded up (a hundredth is let pass). Of a DeviceLoader only:
  /// elsewhere echoed images are normalised again, and that may be what takes the time.
  [[nodiscard]] std::optional<std::int64_t> echo_needed() const;

 private:
  void write_json(const char* kind, const EpochReport& report);

  std::string program_;
  Options options_;
  LoaderKind loader_;
  std::ofstream json_;
  EpochReport sum_;
  double gpu_seconds_ = 0;  // over which sum_.gpu_percent is the mean
};

}  // namespace trainer
