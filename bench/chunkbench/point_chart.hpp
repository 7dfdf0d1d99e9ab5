/// Points over two axes as SVG, joined by lines or not.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "axis.hpp"
#include "markup.hpp"

namespace bench {

struct ChartPoint {
  double x = 0;
  double y = 0;
  std::string hover = {};
  bool chosen = false;  ///< Gets a ring.
};

struct Series {
  std::string name = {};
  std::vector<ChartPoint> points = {};  ///< By x, if joined.
};

struct PointChart {
  std::string label = {};  ///< For those who cannot see it.
  std::string x_title = {};
  std::string y_title = {};
  Axis x = Axis::linear(0, 1);
  Axis y = Axis::linear(0, 1);
  std::vector<double> x_ticks = {};  ///< Instead of those of the axis, if not empty.
  std::function<std::string(double)> x_text = {};
  std::function<std::string(double)> y_text = {};
  std::vector<Series> series = {};
  bool joined = false;
  bool diagonal = false;             ///< A line where y = x.
  std::optional<double> level = {};  ///< A line at this y.
};

[[nodiscard]] Markup draw_point_chart(const PointChart& chart);

/// The marks of `names`, in the order of the series of a chart.
[[nodiscard]] Markup series_legend(const std::vector<std::string>& names);

}  // namespace bench
