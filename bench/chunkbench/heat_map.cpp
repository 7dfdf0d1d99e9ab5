#include "heat_map.hpp"

#include <algorithm>

#include "axis.hpp"
#include "fitted_text.hpp"

namespace bench {
namespace {

// All lengths are CSS pixels.
constexpr double kCellWidth = 51;
constexpr double kCellHeight = 34;
constexpr double kGap = 4;
constexpr double kTop = 22;
constexpr double kBottom = 42;
constexpr double kRight = 6;
/// Of the small type, per character, generously.
constexpr double kCharacterWidth = 6.4;

std::string classes_of(const HeatCell& cell) {
  std::string classes = "c " + std::string(to_string(cell.status));
  if (cell.best) classes += " best";
  return classes;
}

std::string fill_of(const HeatCell& cell, const ValueColours& colours) {
  if (cell.value) return colours.of(*cell.value).hex();
  return "url(#hatch-" + std::string(cell.status == CellStatus::failed ? "failed" : "none") + ")";
}

void draw_marks(Markup& svg, const HeatCell& cell, double x, double y, double width, double height,
                const std::string& ink) {
  if (cell.status == CellStatus::settled || cell.status == CellStatus::measuring) {
    svg.empty("rect", {{"class", "early"},
                       {"x", coordinate(x + 2.5)},
                       {"y", coordinate(y + 2.5)},
                       {"width", coordinate(width - 5)},
                       {"height", coordinate(height - 5)},
                       {"rx", "2"},
                       {"stroke", ink}});
  }
  if (cell.as_good) {
    svg.empty("circle", {{"cx", coordinate(x + width - 6)},
                         {"cy", coordinate(y + 6)},
                         {"r", "2.5"},
                         {"fill", ink}});
  }
  if (cell.best) {
    svg.empty("rect", {{"class", "ring"},
                       {"x", coordinate(x - 2)},
                       {"y", coordinate(y - 2)},
                       {"width", coordinate(width + 4)},
                       {"height", coordinate(height + 4)},
                       {"rx", "4"}});
  }
}

/// The colour of a cell's text and marks; empty: that of the page.
std::string ink_of(const HeatCell& cell, const ValueColours& colours) {
  return cell.value ? ink_on(colours.of(*cell.value)).hex() : "";
}

/// Text takes the fill of the group that the cell is drawn in: ink_of().
void draw_cell(Markup& svg, const HeatCell& cell, const ValueColours& colours, double x, double y,
               double width, double height) {
  const std::string ink = ink_of(cell, colours);
  svg.empty("rect", {{"class", "f"},
                     {"x", coordinate(x)},
                     {"y", coordinate(y)},
                     {"width", coordinate(width)},
                     {"height", coordinate(height)},
                     {"rx", "3"},
                     {"fill", fill_of(cell, colours)}});
  const double middle = x + width / 2;
  const double base = y + height / 2 + (cell.second.empty() ? 4 : -1);
  const auto write = [&](const char* style, double at, const std::string& text) {
    if (text.empty()) return;
    svg.leaf("text", {{"class", style}, {"x", coordinate(middle)}, {"y", coordinate(at)}}, text);
  };
  write(cell.value ? "v" : "v none", base, cell.text);
  write("v2", base + 12, cell.second);
  draw_marks(svg, cell, x, y, width, height, ink.empty() ? "currentColor" : ink);
}

}  // namespace

Markup draw_heat_map(const HeatMap& map, const ValueColours& colours) {
  std::size_t longest = 0;
  for (const std::string& row : map.rows) longest = std::max(longest, characters(row));
  const double left = static_cast<double>(longest) * kCharacterWidth + 12;
  const double width =
      left + static_cast<double>(map.columns.size()) * (kCellWidth + kGap) + kRight;
  const double height =
      kTop + static_cast<double>(map.rows.size()) * (kCellHeight + kGap) + kBottom;

  Markup svg;
  svg.open("svg", {{"class", "heat"},
                   {"role", "img"},
                   {"aria-label", map.label},
                   {"viewBox", "0 0 " + coordinate(width) + " " + coordinate(height)},
                   {"width", coordinate(width)},
                   {"height", coordinate(height)}});
  const auto column_x = [&](std::size_t column) {
    return left + static_cast<double>(column) * (kCellWidth + kGap);
  };
  const auto row_y = [&](std::size_t row) {
    return kTop + static_cast<double>(map.rows.size() - 1 - row) * (kCellHeight + kGap);
  };
  svg.leaf("text", {{"class", "t"}, {"x", "0"}, {"y", "12"}}, map.row_title);
  for (std::size_t row = 0; row < map.rows.size(); ++row) {
    svg.leaf("text",
             {{"class", "l e"},
              {"x", coordinate(left - 8)},
              {"y", coordinate(row_y(row) + kCellHeight / 2 + 4)}},
             map.rows[row]);
  }
  for (std::size_t column = 0; column < map.columns.size(); ++column) {
    svg.leaf("text",
             {{"class", "l m"},
              {"x", coordinate(column_x(column) + kCellWidth / 2)},
              {"y", coordinate(height - kBottom + 14)}},
             map.columns[column]);
  }
  svg.leaf("text",
           {{"class", "t m"},
            {"x", coordinate((left + width - kRight - kGap) / 2)},
            {"y", coordinate(height - 8)}},
           map.column_title);
  for (const HeatCell& cell : map.cells) {
    if (cell.value) {
      svg.open("g", {{"class", classes_of(cell)},
                     {"data-i", std::to_string(cell.index)},
                     {"data-v", nlohmann::json(*cell.value).dump()},
                     {"fill", ink_of(cell, colours)}});
    } else {
      svg.open("g", {{"class", classes_of(cell)}, {"data-i", std::to_string(cell.index)}});
    }
    svg.leaf("title", cell.hover);
    draw_cell(svg, cell, colours, column_x(cell.column), row_y(cell.row), kCellWidth, kCellHeight);
    svg.close();
  }
  return svg.close(), svg;
}

Markup draw_colour_legend(const ValueColours& colours, const std::string& title,
                          const std::function<std::string(double)>& tick_text) {
  constexpr double kWidth = 260;
  constexpr double kMargin = 30;
  constexpr int kStops = 32;
  /// Of the width, that the texts of two values need at least.
  constexpr double kRoom = 0.18;
  Markup svg;
  svg.open("svg", {{"class", "legend"},
                   {"role", "img"},
                   {"aria-label", title + ", colours from " + tick_text(colours.lowest()) + " to " +
                                      tick_text(colours.highest())},
                   {"viewBox", "0 0 320 46"},
                   {"width", "320"},
                   {"height", "46"}});
  svg.leaf("text", {{"class", "t"}, {"x", coordinate(kMargin)}, {"y", "10"}}, title);
  for (int i = 0; i < kStops; ++i) {
    // A little wider than its step, or lines of the background would show between.
    svg.empty("rect", {{"x", coordinate(kMargin + kWidth * i / kStops)},
                       {"y", "16"},
                       {"width", coordinate(kWidth / kStops + (i + 1 < kStops ? 0.6 : 0))},
                       {"height", "12"},
                       {"fill", colours.of(colours.value_at((i + 0.5) / kStops)).hex()}});
  }
  std::vector<double> places = {0};
  if (colours.highest() > colours.lowest()) {
    // The ends are exact, and what lies between leaves them room.
    const Axis axis = colours.steps() == ValueColours::Steps::ratios
                          ? Axis::logarithmic(colours.lowest(), colours.highest())
                          : Axis::linear(colours.lowest(), colours.highest());
    for (const double tick : axis.ticks()) {
      const double place = colours.place(tick);
      if (place >= places.back() + kRoom && place <= 1 - kRoom) places.push_back(place);
    }
    places.push_back(1);
  }
  for (const double place : places) {
    const std::string x = coordinate(kMargin + kWidth * place);
    svg.empty("path", {{"class", "tick"}, {"d", "M" + x + " 28v4"}});
    svg.leaf("text", {{"class", "l m"}, {"x", x}, {"y", "43"}}, tick_text(colours.value_at(place)));
  }
  return svg.close(), svg;
}

Markup hatch_patterns() {
  Markup svg;
  svg.raw(
      R"(<svg class="defs" width="0" height="0" aria-hidden="true"><defs>)"
      R"(<pattern id="hatch-none" width="6" height="6" patternUnits="userSpaceOnUse">)"
      R"(<path d="M0 0h6v6h-6z" class="hb"/><path d="M-1 7L7 -1" class="hn"/></pattern>)"
      R"(<pattern id="hatch-failed" width="6" height="6" patternUnits="userSpaceOnUse">)"
      R"(<path d="M0 0h6v6h-6z" class="hb"/><path d="M-1 7L7 -1M-1 -1L7 7" class="hf"/></pattern>)"
      R"(</defs></svg>)");
  return svg;
}

Markup draw_swatch(CellStatus status, bool best, bool as_good) {
  HeatCell cell;
  cell.status = status;
  cell.best = best;
  cell.as_good = as_good;
  if (status == CellStatus::measured || status == CellStatus::settled) cell.value = 0.62;
  Markup svg;
  svg.open("svg", {{"class", "swatch"},
                   {"aria-hidden", "true"},
                   {"viewBox", "0 0 26 20"},
                   {"width", "26"},
                   {"height", "20"}});
  draw_cell(svg, cell, ValueColours(0, 1), 3, 3, 20, 14);
  return svg.close(), svg;
}

}  // namespace bench
