/// Colours of values: dark violet for the worst, through teal, to light yellow for the best.
///
/// Equal steps look equally large, and the path grows lighter all the way, so that it survives
/// black-and-white printing and every kind of colour blindness. The choice of hues is that of
/// viridis.
///
/// Pure functions; thread-safe.
#pragma once

#include <string>

namespace bench {

/// "#3b528b". \param goodness  0 to 1; what is outside counts as the nearer end.
[[nodiscard]] std::string colour_at(double goodness);

/// Black or white, whichever can be read better on colour_at(goodness): at least 4.5:1 (WCAG AA).
[[nodiscard]] const char* ink_at(double goodness);

}  // namespace bench
