/// Colours of values: dark violet for the worst, through teal, to light yellow for the best.
///
/// Equal steps of a value look equally large, and the path grows lighter all the way, so that it
/// survives black-and-white printing and every kind of colour blindness. The choice of hues is that
/// of viridis.
///
/// Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <string>

namespace bench {

/// sRGB.
struct Colour {
  std::uint8_t red = 0, green = 0, blue = 0;

  [[nodiscard]] std::string hex() const;  ///< "#3b528b"
  bool operator==(const Colour&) const = default;
};

/// \param position  0 to 1; what is outside counts as the nearer end.
[[nodiscard]] Colour colour_at(double position);

/// 0 to 1, as WCAG 2 defines it.
[[nodiscard]] double luminance(Colour colour);

/// Black or white, whichever can be read better on `background`: at least 4.5:1 (WCAG AA) on any.
[[nodiscard]] Colour ink_on(Colour background);

/// How values become colours.
class ValueColours {
 public:
  /// Which values are light.
  enum class Better { more, less };
  /// Whether equal steps of colour are equal steps of the value or equal ratios.
  enum class Steps { even, ratios };

  /// \pre 0 <= lowest <= highest, and 0 < lowest with ratios.
  ValueColours(double lowest, double highest, Better better = Better::more,
               Steps steps = Steps::even);

  /// What lies outside counts as the nearer end.
  [[nodiscard]] Colour of(double value) const { return at(place(value)); }
  /// Of the value between the lowest (0) and the highest (1).
  [[nodiscard]] Colour at(double place) const {
    return colour_at(better_ == Better::more ? place : 1 - place);
  }
  [[nodiscard]] double place(double value) const;
  [[nodiscard]] double lowest() const noexcept { return lowest_; }
  [[nodiscard]] double highest() const noexcept { return highest_; }

 private:
  double lowest_;
  double highest_;
  Better better_;
  Steps steps_;
};

}  // namespace bench
