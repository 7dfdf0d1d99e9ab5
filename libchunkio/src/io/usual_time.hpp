/// How long something usually takes, whatever the few take that hang.
#pragma once

namespace chunkio::io {

/// Follows the median of what is added: each figure moves it one step towards itself, however far
/// away it lies (stochastic approximation, Robbins and Monro, 1951). An average follows the figures
/// that lie far away. Not thread-safe.
class UsualTime {
 public:
  void add(double seconds) noexcept {
    if (seconds_ == 0) {
      seconds_ = seconds;
    } else {
      seconds_ *= seconds > seconds_ ? kStep : 1 / kStep;
    }
  }
  /// 0 before the first.
  [[nodiscard]] double seconds() const noexcept { return seconds_; }

 private:
  static constexpr double kStep = 1.05;  // twice as long takes 15 figures

  double seconds_ = 0;
};

}  // namespace chunkio::io
