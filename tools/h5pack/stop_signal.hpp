/// SIGINT, SIGTERM and SIGHUP as a polite request.
#pragma once

#include <array>
#include <csignal>

namespace h5pack {

/// While it lives, the first of these signals only sets a flag, so that partial output can be
/// removed; a second one ends the process at once. One at a time.
class StopSignal {
 public:
  StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;
  /// Restores the handlers that were there before.
  ~StopSignal();

  /// The signal that arrived, or 0. Safe from any thread.
  [[nodiscard]] static int received() noexcept;
  /// \throws chunkio::Error cancelled if a signal arrived.
  static void check();

 private:
  std::array<struct ::sigaction, 3> previous_{};
};

}  // namespace h5pack
