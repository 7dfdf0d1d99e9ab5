#include "chunkbench/heat_map_sections.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "chunkbench/colour_scale.hpp"
#include "chunkbench/heat_map.hpp"
#include "chunkbench/number_format.hpp"
#include "chunkbench/ranking.hpp"

namespace bench {
namespace {

std::string capitalised(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 32);
  return text;
}

std::string times_text(double factor) { return rounded(factor) + " ×"; }

/// Everything about a cell, as lines.
std::string hover_of(const Cell& cell, const std::optional<Bound>& bound) {
  std::string text = sizes_text(cell) + " (" + plural(cell.chunk_samples, "image") + " a chunk)\n" +
                     reader_text(cell.source, cell.threads) + ", " + order_text(cell.order) +
                     " order";
  if (cell.images_per_second)
    text += "\n" + spread_text(*cell.images_per_second, rounded, " images/s");
  if (cell.bytes_per_second) {
    text += "\n" + si(cell.bytes_per_second->spread.median, "B/s") + " read";
    if (const auto share = share_of_bound(cell, bound)) {
      text += ", " + percent_text(*share) + " of " + bound->name;
    }
  }
  if (const auto stall = stall_share(cell)) text += "\nstall " + percent_text(*stall);
  if (cell.status != CellStatus::measured) {
    const bool early = cell.status == CellStatus::pruned;
    text += "\n" + std::string(early ? "pruned (stopped early)" : to_string(cell.status));
    if (!cell.reason.empty()) text += ": " + cell.reason;
  }
  return text;
}

/// What stands in a cell without a value.
std::string status_text(CellStatus status) {
  return status == CellStatus::measuring ? "begun" : std::string(to_string(status));
}

/// Lowest and highest of what is there.
struct Ends {
  double lowest = std::numeric_limits<double>::infinity();
  double highest = -std::numeric_limits<double>::infinity();

  void add(double value) {
    lowest = std::min(lowest, value);
    highest = std::max(highest, value);
  }
  void add(const std::optional<double>& value) {
    if (value) add(*value);
  }
  [[nodiscard]] bool any() const { return lowest <= highest; }
};

/// The panels of groups under a heading for each order.
/// \param name  of what is shown, as "Hit rate".
/// \param caption  what to say behind the name of a group.
void add_panels(Markup& html, const Results& results, const std::vector<CellGroup>& groups,
                const std::string& name, const ValueColours& colours,
                const std::function<std::string(const CellGroup&)>& caption,
                const std::function<HeatCell(const CellGroup&, std::size_t)>& show) {
  std::string order;
  for (const CellGroup& group : groups) {
    if (group.order != order) {
      if (!order.empty()) html.close();
      order = group.order;
      html.leaf("h3", capitalised(order_text(order)) + " order");
      html.open("div", {{"class", "panels"}});
    }
    const std::string reader = reader_text(group.source, group.threads);
    html.open("figure").open("figcaption").text(reader).leaf("small", caption(group)).close();
    html.open("div", {{"class", "scroll"}});
    html.add(draw_heat_map(
        results, group,
        name + " of " + reader + ", " + order_text(order) + " order, over chunk and cache size",
        colours, [&](std::size_t cell) { return show(group, cell); }));
    html.close().close();
  }
  if (!order.empty()) html.close();
}

/// What the marks in a panel mean.
constexpr const char* kMarks =
    "Ring: the best of its panel. Dot: its range meets that of the best, so it is as good for all "
    "this run can tell. Dashed: pruned, that is, stopped early, since its rank was certain. "
    "Hatched: failed, skipped, or not measured to the end.";

/// Only the groups with the most threads of each order and source: how often chunks are loaded
/// hardly depends on threads.
std::vector<CellGroup> with_most_threads(const std::vector<CellGroup>& groups) {
  std::vector<CellGroup> kept;
  for (const CellGroup& group : groups) {
    if (!kept.empty() && kept.back().order == group.order && kept.back().source == group.source) {
      kept.back() = group;  // Threads ascend.
    } else {
      kept.push_back(group);
    }
  }
  return kept;
}

/// A measure that the model predicts.
struct Modelled {
  const char* id;
  const char* name;  ///< "Hit rate"
  const char* note;
  const Predicted Cell::*values;
  std::string (*text)(double);
  std::string (*cell_text)(double);
  ValueColours (*colours)(double lowest, double highest);
};

HeatCell show_modelled(const Modelled& what, const Cell& cell) {
  const Predicted& values = cell.*what.values;
  HeatCell heat;
  heat.value = values.measured ? values.measured : values.predicted;
  heat.marks = to_string(heat.value ? CellStatus::measured : cell.status);
  heat.text = values.measured ? what.cell_text(*values.measured)
              : heat.value    ? "–"
              : cell.status == CellStatus::measured || cell.status == CellStatus::pruned
                  ? "unknown"
                  : status_text(cell.status);
  if (values.predicted) heat.second = what.cell_text(*values.predicted);
  heat.hover = std::string(what.name) + " " +
               (values.measured ? what.text(*values.measured) : "not measured") +
               (values.predicted ? ", predicted " + what.text(*values.predicted) : "") + "\n" +
               sizes_text(cell);
  if (!cell.reason.empty()) {
    heat.hover += "\n" + std::string(to_string(cell.status)) + ": " + cell.reason;
  }
  return heat;
}

Markup modelled_section(const Results& results, const Modelled& what) {
  Markup html;
  Ends ends;
  for (const Cell& cell : results.cells) {
    ends.add((cell.*what.values).measured);
    ends.add((cell.*what.values).predicted);
  }
  if (!ends.any()) return html;
  const ValueColours colours = what.colours(ends.lowest, ends.highest);
  html.begin_section(what.id, what.name,
                     std::string(what.note) +
                         " Upper number measured, lower number predicted; of each source, the "
                         "cells with the most threads.");
  html.add(draw_colour_legend(colours, what.name, what.text));
  add_panels(
      html, results, with_most_threads(group_cells(results)), what.name, colours,
      [](const CellGroup&) { return std::string(); },
      [&](const CellGroup&, std::size_t i) { return show_modelled(what, results.cells[i]); });
  html.close();
  return html;
}

std::string short_percent(double share) {
  const std::string text = percent_text(share);
  return text.substr(0, text.size() - 2) + "%";
}

std::string short_times(double factor) {
  return factor >= 1000 ? short_si(factor) + "×" : rounded(factor) + "×";
}

constexpr Modelled kHitRate = {"hits",
                               "Hit rate",
                               "The share of samples that needed no chunk to be loaded.",
                               &Cell::hit_rate,
                               percent_text,
                               short_percent,
                               [](double, double) { return ValueColours(0, 1); }};

constexpr Modelled kAmplification = {
    "amplification",
    "Read amplification",
    "Bytes read from the file for each byte delivered; fewer are better, and lighter.",
    &Cell::read_amplification,
    times_text,
    short_times,
    [](double lowest, double highest) {
      // From 1 to 2 at least, so that noise around 1 has one colour.
      lowest = std::min(lowest, 1.0);
      highest = std::max(highest, 2.0);
      const bool wide = lowest > 0 && highest / lowest > 8;
      return ValueColours(lowest, highest, ValueColours::Better::less,
                          wide ? ValueColours::Steps::ratios : ValueColours::Steps::even);
    }};

}  // namespace

Markup speed_section(const Results& results) {
  Markup html;
  if (results.cells.empty()) return html;
  Ends ends;
  for (const Cell& cell : results.cells) {
    if (has_speed(cell)) ends.add(cell.images_per_second->spread.median);
  }
  const bool any = ends.any();
  // From 0, not from the slowest: what matters is how far from the best a cell is.
  const ValueColours colours(0, any ? ends.highest : 1);
  const std::optional<Bound> bound = bound_of(results);
  html.begin_section(
      "speed", "Images per second",
      "Median of the rounds; lighter is faster, on one scale for all panels. Point at a "
      "cell for its range and what else is known of it.");
  if (any) html.add(draw_colour_legend(colours, "images/s", short_si));
  html.leaf("p", {{"class", "note"}}, kMarks);
  add_panels(
      html, results, group_cells(results), "Images per second", colours,
      [&](const CellGroup& group) {
        if (!group.best) return std::to_string(group.cells.size()) + " cells, none measured";
        return "best " + rounded(results.cells[*group.best].images_per_second->spread.median) +
               " images/s";
      },
      [&](const CellGroup& group, std::size_t i) {
        const Cell& cell = results.cells[i];
        const auto& ties = group.as_good;
        HeatCell heat;
        if (has_speed(cell)) heat.value = cell.images_per_second->spread.median;
        heat.text = heat.value ? short_si(*heat.value) : status_text(cell.status);
        heat.hover = hover_of(cell, bound);
        heat.marks = std::string(to_string(cell.status)) + (group.best == i ? " best" : "") +
                     (std::find(ties.begin(), ties.end(), i) != ties.end() ? " tie" : "");
        return heat;
      });
  html.close();
  return html;
}

Markup hit_rate_section(const Results& results) { return modelled_section(results, kHitRate); }

Markup amplification_section(const Results& results) {
  return modelled_section(results, kAmplification);
}

}  // namespace bench
