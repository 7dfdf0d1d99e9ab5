/// Turns SIGINT, SIGTERM and SIGHUP into a request to stop.
#pragma once

#include <array>
#include <chrono>
#include <csignal>
#include <stop_token>
#include <string>
#include <thread>

namespace cli {

/// While it lives, the first of these signals only sets a flag, so that partial output can be
/// removed; a second one ends the process at once. So does a thread kLimit after the first one: a
/// call of libhdf5 or of the disk may never return. What is on disk then is what a kill leaves. One
/// at a time.
class StopSignal {
 public:
  static constexpr std::chrono::seconds kLimit{5};

  /// \param left  what the command leaves if the limit ends it, and how to go on, as a clause for
  ///              its last words; empty: nothing worth saying.
  explicit StopSignal(const std::string& left);
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;
  /// Restores the handlers that were there before, and forgets the signal.
  ~StopSignal();

  /// The signal that arrived, or 0. Safe from any thread.
  [[nodiscard]] static int received() noexcept;
  /// \throws chunkio::Error cancelled if a signal arrived.
  static void check();

 private:
  std::array<struct ::sigaction, 3> previous_{};
  std::jthread watch_;
};

/// The same as a token, for the library. A thread of its own looks ten times a second.
class StopSignalToken {
 public:
  StopSignalToken();
  [[nodiscard]] std::stop_token token() const noexcept { return source_.get_token(); }

 private:
  std::stop_source source_;
  std::jthread thread_;
};

}  // namespace cli
