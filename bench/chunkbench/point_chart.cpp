#include "point_chart.hpp"

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "fitted_text.hpp"

namespace bench {
namespace {

// All lengths are CSS pixels.
constexpr double kWidth = 390;
constexpr double kHeight = 294;
constexpr double kLeft = 58;
constexpr double kRight = 22;
constexpr double kTop = 24;
constexpr double kBottom = 50;
constexpr double kPlotWidth = kWidth - kLeft - kRight;
constexpr double kPlotHeight = kHeight - kTop - kBottom;
constexpr std::size_t kStyles = 6;

/// Shapes tell series apart where colours do not.
std::string shape_path(std::size_t series, double x, double y) {
  static constexpr std::array<const char*, kStyles> kShapes = {
      "m-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",
      "m-3.6 -3.6h7.2v7.2h-7.2z",
      "m0 -4.8l4.6 8h-9.2z",
      "m0 -5.2l4.6 5.2l-4.6 5.2l-4.6 -5.2z",
      "m0 4.8l4.6 -8h-9.2z",
      "m-4.2 -1.5h2.7v-2.7h3v2.7h2.7v3h-2.7v2.7h-3v-2.7h-2.7z"};
  return "M" + coordinate(x) + " " + coordinate(y) + kShapes[series % kStyles];
}

std::string style_of(std::size_t series) { return "p" + std::to_string(series % kStyles); }

/// Beyond the styles there are, lines are dashed.
std::string line_style_of(std::size_t series) {
  return style_of(series) + (series / kStyles % 2 == 1 ? " dashed" : "");
}

double x_place(const PointChart& chart, double x) {
  return kLeft + kPlotWidth * std::clamp(chart.x.place(x), 0.0, 1.0);
}

double y_place(const PointChart& chart, double y) {
  return kTop + kPlotHeight * (1 - std::clamp(chart.y.place(y), 0.0, 1.0));
}

void draw_axes(Markup& svg, const PointChart& chart) {
  for (const double tick : chart.y.ticks()) {
    const std::string y = coordinate(y_place(chart, tick));
    svg.empty("path", {{"class", "grid"},
                       {"d", "M" + coordinate(kLeft) + " " + y + "h" + coordinate(kPlotWidth)}});
    svg.leaf("text",
             {{"class", "l e"},
              {"x", coordinate(kLeft - 7)},
              {"y", coordinate(y_place(chart, tick) + 4)}},
             chart.y_text(tick));
  }
  const std::vector<double>& ticks = chart.x_ticks.empty() ? chart.x.ticks() : chart.x_ticks;
  // Texts that would touch the one before are left out; their lines stay.
  double text_end = 0;
  for (const double tick : ticks) {
    const double x = x_place(chart, tick);
    const std::string text = chart.x_text(tick);
    const double half = static_cast<double>(characters(text)) * 3.6;
    svg.empty("path", {{"class", "grid"},
                       {"d", "M" + coordinate(x) + " " + coordinate(kTop) + "v" +
                                 coordinate(kPlotHeight)}});
    if (x - half < text_end) continue;
    text_end = x + half + 6;
    // The last one may reach beyond the plot, not beyond the image.
    const double shown_x = std::min(x, kWidth - half);
    svg.leaf(
        "text",
        {{"class", "l m"}, {"x", coordinate(shown_x)}, {"y", coordinate(kHeight - kBottom + 19)}},
        text);
  }
  svg.leaf("text", {{"class", "t"}, {"x", "0"}, {"y", "11"}}, chart.y_title);
  svg.leaf(
      "text",
      {{"class", "t m"}, {"x", coordinate(kLeft + kPlotWidth / 2)}, {"y", coordinate(kHeight - 8)}},
      chart.x_title);
}

void draw_lines(Markup& svg, const PointChart& chart) {
  if (chart.diagonal) {
    const double from = std::max(chart.x.lowest(), chart.y.lowest());
    const double to = std::min(chart.x.highest(), chart.y.highest());
    svg.empty(
        "path",
        {{"class", "level"},
         {"d", "M" + coordinate(x_place(chart, from)) + " " + coordinate(y_place(chart, from)) +
                   "L" + coordinate(x_place(chart, to)) + " " + coordinate(y_place(chart, to))}});
  }
  if (chart.level) {
    svg.empty("path",
              {{"class", "level"},
               {"d", "M" + coordinate(kLeft) + " " + coordinate(y_place(chart, *chart.level)) +
                         "h" + coordinate(kPlotWidth)}});
  }
  if (!chart.joined) return;
  for (std::size_t s = 0; s < chart.series.size(); ++s) {
    std::string path;
    for (const ChartPoint& point : chart.series[s].points) {
      path += path.empty() ? "M" : "L";
      path += coordinate(x_place(chart, point.x)) + " " + coordinate(y_place(chart, point.y));
    }
    svg.empty("path", {{"class", "line " + line_style_of(s)}, {"d", path}});
  }
}

void draw_points(Markup& svg, const PointChart& chart) {
  for (std::size_t s = 0; s < chart.series.size(); ++s) {
    for (const ChartPoint& point : chart.series[s].points) {
      const double x = x_place(chart, point.x);
      const double y = y_place(chart, point.y);
      svg.open("g", {{"class", "pt " + style_of(s)},
                     {"data-x", nlohmann::json(point.x).dump()},
                     {"data-v", nlohmann::json(point.y).dump()}});
      svg.leaf("title", point.hover);
      if (point.chosen) {
        svg.empty("circle",
                  {{"class", "ring"}, {"cx", coordinate(x)}, {"cy", coordinate(y)}, {"r", "8.5"}});
      }
      svg.empty("path", {{"class", "dot"}, {"d", shape_path(s, x, y)}});
      svg.close();
    }
  }
}

}  // namespace

Markup draw_point_chart(const PointChart& chart) {
  Markup svg;
  svg.open("svg", {{"class", chart.joined ? "points joined" : "points"},
                   {"role", "img"},
                   {"aria-label", chart.label},
                   {"viewBox", "0 0 " + coordinate(kWidth) + " " + coordinate(kHeight)},
                   {"width", coordinate(kWidth)},
                   {"height", coordinate(kHeight)}});
  draw_axes(svg, chart);
  draw_lines(svg, chart);
  draw_points(svg, chart);
  return svg.close(), svg;
}

Markup series_legend(const std::vector<std::string>& names) {
  Markup list;
  list.open("ul", {{"class", "key"}});
  for (std::size_t s = 0; s < names.size(); ++s) {
    list.open("li");
    list.open("svg", {{"class", "swatch"},
                      {"aria-hidden", "true"},
                      {"viewBox", "0 0 26 16"},
                      {"width", "26"},
                      {"height", "16"}});
    list.empty("path", {{"class", "line " + line_style_of(s)}, {"d", "M2 8h22"}});
    list.open("g", {{"class", style_of(s)}});
    list.empty("path", {{"class", "dot"}, {"d", shape_path(s, 13, 8)}});
    list.close().close();
    list.text(names[s]).close();
  }
  return list.close(), list;
}

}  // namespace bench
