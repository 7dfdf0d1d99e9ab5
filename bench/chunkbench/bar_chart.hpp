/// Horizontal bars as SVG: labels on the left, bars of proportional length from 0, values on the
/// right.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "markup.hpp"

namespace bench {

/// A part of a bar. Parts follow each other.
struct BarPart {
  double length = 0;
  std::string style = {};  ///< A class of the style sheet: "s0" to "s5", "w0", "w1".
  std::string hover = {};
};

struct Bar {
  std::string title = {};
  std::string detail = {};  ///< A second, smaller line; or empty.
  std::vector<BarPart> parts = {};
  std::optional<std::pair<double, double>> range = {};  ///< Lowest and highest, as a whisker.
  std::vector<double> others = {};                      ///< Values of others, as faint ticks.
  std::string text = {};                                ///< On the right.
  std::string hover = {};
};

struct BarGroup {
  std::string title = {};  ///< Or empty.
  std::vector<Bar> bars = {};
};

/// A line across all bars.
struct BarLimit {
  double value = 0;
  std::string text = {};
  std::string hover = {};
};

struct BarChart {
  std::string label = {};  ///< For those who cannot see it.
  std::string axis_title = {};
  std::vector<BarGroup> groups = {};
  std::vector<BarLimit> limits = {};
  double highest = 0;      ///< The end of the axis, or a little less.
  bool exact_end = false;  ///< The axis ends there: shares.
  std::function<std::string(double)> tick_text = {};
};

[[nodiscard]] Markup draw_bar_chart(const BarChart& chart);

}  // namespace bench
