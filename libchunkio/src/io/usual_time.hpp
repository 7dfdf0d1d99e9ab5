/// How long something usually takes, whatever the few take that hang.
#pragma once

#include <algorithm>
#include <cstdint>

namespace chunkio::io {

/// Follows the median of what is added: each figure moves it one step towards itself, however far
/// away it lies (stochastic approximation, Robbins and Monro, 1951). An average follows the figures
/// that lie far away. Steps are large at first. Not thread-safe.
class UsualTime {
 public:
  void add(double seconds) noexcept {
    ++count_;
    const double step = 1 + std::max(kStep, 1 / static_cast<double>(count_));
    if (count_ == 1) {
      seconds_ = seconds;
    } else {
      seconds_ *= seconds > seconds_ ? step : 1 / step;
    }
  }
  /// 0 before the first.
  [[nodiscard]] double seconds() const noexcept { return seconds_; }
  /// How many figures it is of.
  [[nodiscard]] std::int64_t count() const noexcept { return count_; }

 private:
  static constexpr double kStep = 0.05;  // twice as long takes 15 figures

  double seconds_ = 0;
  std::int64_t count_ = 0;
};

}  // namespace chunkio::io
