// How long the network had no images to work on.
//
// On a GPU that is what passes on the stream between the end of a step and the beginning of the
// work of the next one, measured there by events: the wait for images, whatever causes it, copies
// that the stream itself makes, and the host when it comes late. The time that the host waits for a
// batch would say less: while it does, the GPU may still have steps to do, or may not. On a CPU it
// is the time between steps, normalising included.
#pragma once

#include <c10/core/Event.h>

#include <chrono>
#include <cstddef>
#include <vector>

#include <torch/types.h>

namespace trainer {

/// One thread, with the stream of the steps as the current one.
class StallMeter {
 public:
  explicit StallMeter(torch::Device device) : device_(device) {}

  /// The network has nothing to do until the first step.
  void begin_epoch();
  /// The batch is there: what follows in the stream works on it.
  void begin_step() { mark(); }
  void end_step() { mark(); }
  /// Of this epoch, in seconds: from the beginning to the first step, and between steps.
  /// \pre the last step is done.
  [[nodiscard]] double stall_seconds() const;

 private:
  using Clock = std::chrono::steady_clock;

  void mark();

  torch::Device device_;
  // Ends and beginnings alternate.
  std::vector<c10::Event> events_;  // kept from epoch to epoch
  std::vector<Clock::time_point> times_;
  std::size_t num_marks_ = 0;
};

}  // namespace trainer
