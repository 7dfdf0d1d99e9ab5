/// From values to places along an axis, and which values to write beside it.
///
/// Pure functions; thread-safe.
#pragma once

#include <vector>

namespace bench {

class Axis {
 public:
  /// Equal steps. The ends move outwards to round values. \param lowest, highest  finite.
  [[nodiscard]] static Axis linear(double lowest, double highest);
  /// Equal ratios; the ends stay where they are. \pre 0 < lowest <= highest.
  [[nodiscard]] static Axis logarithmic(double lowest, double highest);

  /// 0 at the low end, 1 at the high end; beyond them less or more. \pre value > 0 if logarithmic.
  [[nodiscard]] double place(double value) const;
  /// Round values within the ends, ascending, some 2 to 8 of them.
  [[nodiscard]] const std::vector<double>& ticks() const noexcept { return ticks_; }
  [[nodiscard]] double lowest() const noexcept { return lowest_; }
  [[nodiscard]] double highest() const noexcept { return highest_; }

 private:
  double lowest_ = 0;
  double highest_ = 1;
  bool logarithmic_ = false;
  std::vector<double> ticks_ = {};
};

}  // namespace bench
