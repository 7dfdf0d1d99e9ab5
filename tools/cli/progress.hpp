/// Progress of a long operation on stderr: a bar on a terminal, a plain line every few seconds
/// elsewhere.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

namespace cli {

/// Draws from a thread of its own; add() is lock-free and may be called from any thread.
class Progress {
 public:
  /// \param label  what is happening ("packing train").
  /// \param unit   what is counted ("images").
  /// \param total  number of units, > 0.
  /// \param quiet  draw nothing.
  Progress(std::string label, std::string unit, std::int64_t total, bool quiet);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void add(std::int64_t units) noexcept { done_.fetch_add(units, std::memory_order_relaxed); }
  /// Of the units that are done, so many were skipped. Thread-safe.
  void add_skipped(std::int64_t units) noexcept {
    skipped_.fetch_add(units, std::memory_order_relaxed);
  }
  /// Draws the last state. On a terminal erases it if all is done, since the result is printed
  /// next, and else ends the line. The destructor calls it, too.
  void finish();

 private:
  struct Impl;
  std::atomic<std::int64_t> done_{0};
  std::atomic<std::int64_t> skipped_{0};
  std::unique_ptr<Impl> impl_;
};

}  // namespace cli
