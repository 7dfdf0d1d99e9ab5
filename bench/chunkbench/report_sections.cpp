#include "report_sections.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "bar_chart.hpp"
#include "colour_scale.hpp"
#include "heat_map.hpp"
#include "point_chart.hpp"
#include "quantity.hpp"
#include "ranking.hpp"

namespace bench {
namespace {

void begin_section(Markup& html, const std::string& id, const std::string& title,
                   const std::string& text) {
  html.open("section", {{"id", id}});
  html.leaf("h2", title);
  html.leaf("p", {{"class", "note"}}, text);
}

std::string capitalised(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 32);
  return text;
}

std::string spread_text(const Sampled& sampled, const std::string& unit, bool si_prefix) {
  const auto text = [&](double value) {
    return si_prefix ? si(value, unit) : rounded(value) + " " + unit;
  };
  if (sampled.count == 1) return text(sampled.spread.median) + " (1 round)";
  return text(sampled.spread.median) + " (" + text(sampled.spread.lowest) + " to " +
         text(sampled.spread.highest) + ", " + plural(sampled.count, "round") + ")";
}

std::string predicted_text(const Predicted& values,
                           const std::function<std::string(double)>& text) {
  std::string line = values.measured ? text(*values.measured) : "not measured";
  if (values.predicted) line += ", predicted " + text(*values.predicted);
  return line;
}

std::string tick_si(double value) { return tick_text(short_si(value)); }

std::string tick_percent(double share) { return tick_text(percent_text(share)); }

std::string times_text(double factor) { return rounded(factor) + " ×"; }

/// Everything about a cell, as lines.
std::string hover_of(const Cell& cell, const std::optional<Bound>& bound) {
  std::string text = sizes_text(cell) + " (" + plural(cell.chunk_samples, "picture") +
                     " a chunk)\n" + reader_text(cell.source, cell.threads) + ", " +
                     order_text(cell.order) + " order";
  if (cell.images_per_second)
    text += "\n" + spread_text(*cell.images_per_second, "images/s", false);
  if (cell.bytes_per_second) {
    text += "\n" + si(cell.bytes_per_second->spread.median, "B/s") + " read";
    if (const auto share = share_of_bound(cell, bound)) {
      text += ", " + share_text(*share) + " of " + bound->name;
    }
  }
  if (const auto stall = stall_share(cell)) text += "\nstall " + percent_text(*stall);
  if (cell.status != CellStatus::measured) {
    const bool early = cell.status == CellStatus::settled;
    text += "\n" + std::string(early ? "settled (stopped early)" : to_string(cell.status));
    if (!cell.reason.empty()) text += ": " + cell.reason;
  }
  return text;
}

/// The columns and rows that all heat maps of a page share.
class SizeGrid {
 public:
  explicit SizeGrid(const std::vector<Cell>& cells) {
    std::set<std::pair<std::int64_t, std::int64_t>> chunks;
    std::set<std::int64_t> caches;
    for (const Cell& cell : cells) {
      chunks.emplace(cell.chunk_bytes, cell.chunk_samples);
      caches.insert(cell.cache_bytes);
    }
    chunks_.assign(chunks.begin(), chunks.end());
    caches_.assign(caches.begin(), caches.end());
  }
  [[nodiscard]] std::size_t column_of(const Cell& cell) const {
    return place(chunks_, std::pair(cell.chunk_bytes, cell.chunk_samples));
  }
  [[nodiscard]] std::size_t row_of(const Cell& cell) const {
    return place(caches_, cell.cache_bytes);
  }
  [[nodiscard]] HeatMap frame(const std::string& source, const std::string& label) const {
    HeatMap map;
    map.label = label;
    map.column_title = "chunk size";
    map.row_title = cache_word(source);
    for (const auto& [bytes, samples] : chunks_) map.columns.push_back(size_text(bytes));
    for (const std::int64_t bytes : caches_) map.rows.push_back(size_text(bytes));
    return map;
  }

 private:
  template <class Value>
  static std::size_t place(const std::vector<Value>& sorted, const Value& value) {
    return static_cast<std::size_t>(std::lower_bound(sorted.begin(), sorted.end(), value) -
                                    sorted.begin());
  }

  std::vector<std::pair<std::int64_t, std::int64_t>> chunks_;
  std::vector<std::int64_t> caches_;
};

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

/// A heading for each order, and the panels of its groups.
void add_panels(Markup& html, const std::vector<CellGroup>& groups,
                const std::function<std::string(const CellGroup&)>& subtitle,
                const std::function<Markup(const CellGroup&)>& draw) {
  std::string order;
  for (const CellGroup& group : groups) {
    if (group.order != order) {
      if (!order.empty()) html.close();
      order = group.order;
      html.leaf("h3", capitalised(order_text(order)) + " order");
      html.open("div", {{"class", "panels"}});
    }
    html.open("figure").open("figcaption").text(reader_text(group.source, group.threads));
    const std::string small = subtitle(group);
    if (!small.empty()) html.leaf("small", small);
    html.close();
    html.open("div", {{"class", "scroll"}}).add(draw(group)).close().close();
  }
  if (!order.empty()) html.close();
}

std::string count_of_cells(const CellGroup& group) {
  return std::to_string(group.cells.size()) + " cells";
}

/// Which marks occur, and what they mean.
Markup mark_legend(const Results& results, const std::vector<CellGroup>& groups) {
  std::set<CellStatus> seen;
  for (const Cell& cell : results.cells) seen.insert(cell.status);
  bool best = false;
  bool as_good = false;
  for (const CellGroup& group : groups) {
    best |= group.best.has_value();
    as_good |= !group.as_good.empty();
  }
  Markup list;
  list.open("ul", {{"class", "key"}});
  const auto item = [&list](CellStatus status, bool is_best, bool is_as_good, const char* text) {
    list.open("li").add(draw_swatch(status, is_best, is_as_good)).text(text).close();
  };
  if (best) item(CellStatus::measured, true, false, "best of its panel");
  if (as_good) {
    item(CellStatus::measured, false, true,
         "its range meets that of the best: as good, for all this run can tell");
  }
  if (seen.contains(CellStatus::settled)) {
    item(CellStatus::settled, false, false, "settled: stopped early, its rank is certain");
  }
  if (seen.contains(CellStatus::pending) || seen.contains(CellStatus::measuring)) {
    item(CellStatus::pending, false, false, "pending: not measured, or not to the end");
  }
  if (seen.contains(CellStatus::failed)) item(CellStatus::failed, false, false, "failed");
  if (seen.contains(CellStatus::skipped)) item(CellStatus::skipped, false, false, "skipped");
  list.close();
  return list;
}

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
  const char* name;  ///< "hit rate"
  const Predicted Cell::*values;
  std::string (*text)(double);
  std::string (*cell_text)(double);
  ValueColours (*colours)(double lowest, double highest);
  bool is_share;  ///< From 0 to 1.
};

Axis axis_of(const Ends& ends, bool share) {
  if (!ends.any()) return Axis::linear(0, 1);
  if (share) {
    // From 0, unless all are near the other end.
    const double from = ends.lowest > 0.5 ? ends.lowest : 0;
    return Axis::linear(from, 1);
  }
  if (ends.lowest > 0 && ends.highest / ends.lowest > 8) {
    return Axis::logarithmic(ends.lowest, ends.highest);
  }
  return Axis::linear(ends.lowest, ends.highest);
}

/// Predicted against measured: what the model is right about lies on the diagonal.
Markup agreement_figure(const Results& results, const Modelled& what) {
  PointChart chart;
  Ends ends;
  std::size_t points = 0;
  for (const CellGroup& group : group_cells(results)) {
    for (const std::size_t i : group.cells) {
      const Cell& cell = results.cells[i];
      const Predicted& values = cell.*what.values;
      if (!values.predicted || !values.measured) continue;
      if (!what.is_share && (*values.predicted <= 0 || *values.measured <= 0)) continue;
      const std::string name = order_text(group.order) + " order";
      if (chart.series.empty() || chart.series.back().name != name) {
        chart.series.push_back({name, {}});
      }
      ends.add(values.predicted);
      ends.add(values.measured);
      ++points;
      chart.series.back().points.push_back({*values.predicted, *values.measured,
                                            sizes_text(cell) + "\n" +
                                                reader_text(cell.source, cell.threads) + ", " +
                                                order_text(cell.order) + " order\n" + what.name +
                                                " " + predicted_text(values, what.text)});
    }
  }
  Markup html;
  if (points == 0) return html;
  chart.label = std::string("Predicted and measured ") + what.name + " of " +
                plural(static_cast<std::int64_t>(points), "cell") +
                "; on the diagonal both are the same";
  chart.x = chart.y = axis_of(ends, what.is_share);
  chart.x_title = std::string("predicted ") + what.name;
  chart.y_title = std::string("measured ") + what.name;
  chart.x_text = chart.y_text = [&](double value) { return tick_text(what.text(value)); };
  chart.diagonal = true;
  std::vector<std::string> names;
  for (const Series& series : chart.series) names.push_back(series.name);
  html.open("figure").leaf("figcaption", capitalised(what.name)).add(draw_point_chart(chart));
  html.add(series_legend(names)).close();
  return html;
}

Markup modelled_section(const Results& results, const Modelled& what, const std::string& title,
                        const std::string& text) {
  Markup html;
  Ends ends;
  for (const Cell& cell : results.cells) {
    ends.add((cell.*what.values).measured);
    ends.add((cell.*what.values).predicted);
  }
  if (!ends.any()) return html;
  const ValueColours colours = what.colours(ends.lowest, ends.highest);
  const SizeGrid grid(results.cells);
  const std::vector<CellGroup> groups = with_most_threads(group_cells(results));

  begin_section(html, what.id, title, text);
  html.add(draw_colour_legend(colours, what.name,
                              [&](double value) { return tick_text(what.text(value)); }));
  add_panels(
      html, groups, [](const CellGroup&) { return std::string(); },
      [&](const CellGroup& group) {
        HeatMap map =
            grid.frame(group.source,
                       capitalised(what.name) + " of " + reader_text(group.source, group.threads) +
                           ", " + order_text(group.order) + " order, over chunk and cache size");
        for (const std::size_t i : group.cells) {
          const Cell& cell = results.cells[i];
          const Predicted& values = cell.*what.values;
          HeatCell heat;
          heat.index = i;
          heat.column = grid.column_of(cell);
          heat.row = grid.row_of(cell);
          heat.value = values.measured ? values.measured : values.predicted;
          heat.status = heat.value ? CellStatus::measured : cell.status;
          heat.text = values.measured ? what.cell_text(*values.measured)
                      : heat.value    ? "–"
                      : cell.status == CellStatus::measured || cell.status == CellStatus::settled
                          ? "unknown"
                          : status_text(cell.status);
          if (values.predicted) heat.second = what.cell_text(*values.predicted);
          heat.hover = std::string(what.name) + " " + predicted_text(values, what.text) + "\n" +
                       sizes_text(cell);
          if (!cell.reason.empty()) {
            heat.hover += "\n" + std::string(to_string(cell.status)) + ": " + cell.reason;
          }
          map.cells.push_back(std::move(heat));
        }
        return draw_heat_map(map, colours);
      });
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

constexpr Modelled kHitRate = {
    "hits",       "hit rate",    &Cell::hit_rate,
    percent_text, short_percent, [](double, double) { return ValueColours(0, 1); },
    true};

constexpr Modelled kAmplification = {
    "amplification",
    "read amplification",
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
    },
    false};

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
  const SizeGrid grid(results.cells);
  const std::vector<CellGroup> groups = group_cells(results);

  begin_section(html, "speed", "Images per second",
                "Median of the rounds; lighter is faster, on one scale for all panels. Point at a "
                "cell for its range and what else is known of it.");
  if (any) html.add(draw_colour_legend(colours, "images/s", tick_si));
  html.add(mark_legend(results, groups));
  add_panels(
      html, groups,
      [&](const CellGroup& group) {
        if (!group.best) return count_of_cells(group) + ", none measured";
        const Cell& best = results.cells[*group.best];
        return "best " + rounded(best.images_per_second->spread.median) + " images/s";
      },
      [&](const CellGroup& group) {
        std::string label = "Images per second over chunk and cache size: " +
                            reader_text(group.source, group.threads) + ", " +
                            order_text(group.order) + " order, " + count_of_cells(group) + ". ";
        if (group.best) {
          const Cell& best = results.cells[*group.best];
          label += "Best: " + rounded(best.images_per_second->spread.median) + " images/s with " +
                   sizes_text(best) + ".";
        } else {
          label += "None was measured.";
        }
        HeatMap map = grid.frame(group.source, label);
        for (const std::size_t i : group.cells) {
          const Cell& cell = results.cells[i];
          HeatCell heat;
          heat.index = i;
          heat.column = grid.column_of(cell);
          heat.row = grid.row_of(cell);
          if (has_speed(cell)) heat.value = cell.images_per_second->spread.median;
          heat.text = heat.value ? short_si(*heat.value) : status_text(cell.status);
          heat.hover = hover_of(cell, bound);
          heat.status = cell.status;
          heat.best = group.best == i;
          heat.as_good =
              std::find(group.as_good.begin(), group.as_good.end(), i) != group.as_good.end();
          map.cells.push_back(std::move(heat));
        }
        return draw_heat_map(map, colours);
      });
  html.close();
  return html;
}

/// A bar for the best cell of a panel, among those of its order: panels come sorted by it.
Bar& add_bar(BarChart& chart, const CellGroup& group, const Cell& best) {
  const std::string title = capitalised(order_text(group.order)) + " order";
  if (chart.groups.empty() || chart.groups.back().title != title) {
    chart.groups.push_back({title, {}});
  }
  Bar& bar = chart.groups.back().bars.emplace_back();
  bar.title = reader_text(group.source, group.threads);
  bar.detail = sizes_text(best);
  return bar;
}

Markup ceiling_section(const Results& results) {
  Markup html;
  const std::optional<Bound> bound = bound_of(results);
  BarChart chart;
  for (const CellGroup& group : group_cells(results)) {
    if (!group.best || !results.cells[*group.best].bytes_per_second) continue;
    const Cell& best = results.cells[*group.best];
    const Spread& read = best.bytes_per_second->spread;
    Bar& bar = add_bar(chart, group, best);
    bar.parts = {{read.median, "s0", ""}};
    bar.range = {read.lowest, read.highest};
    for (const std::size_t i : group.cells) {
      const Cell& cell = results.cells[i];
      if (i != *group.best && has_speed(cell) && cell.bytes_per_second) {
        bar.others.push_back(cell.bytes_per_second->spread.median);
        chart.highest = std::max(chart.highest, bar.others.back());
      }
    }
    const std::optional<double> share = share_of_bound(best, bound);
    bar.text = si(read.median, "B/s") + (share ? ", " + share_text(*share) : "");
    bar.hover =
        hover_of(best, bound) + "\nread " + spread_text(*best.bytes_per_second, "B/s", true);
    chart.highest = std::max(chart.highest, read.highest);
  }
  if (chart.groups.empty()) return html;

  std::string beyond;
  const auto add_limit = [&](const std::string& name, double value, const std::string& text) {
    const std::string line = name + ": " + text;
    // The memory is often ten times as fast: drawn to scale it would leave no room for the bars.
    if (value > 2.5 * chart.highest) {
      beyond += (beyond.empty() ? "" : "; ") + line;
    } else {
      chart.limits.push_back({value, name + ", " + si(value, "B/s"), line});
    }
  };
  for (const Ceiling& ceiling : results.ceilings) {
    add_limit(ceiling.name, ceiling.bytes_per_second.spread.median,
              spread_text(ceiling.bytes_per_second, "B/s", true));
  }
  if (results.options.limit && results.options.limit->bytes_per_second) {
    const double value = *results.options.limit->bytes_per_second;
    add_limit("limit (" + results.options.limit->profile + ")", value, si(value, "B/s"));
  }
  for (const BarLimit& limit : chart.limits) chart.highest = std::max(chart.highest, limit.value);
  std::sort(chart.limits.begin(), chart.limits.end(),
            [](const BarLimit& a, const BarLimit& b) { return a.value > b.value; });

  begin_section(
      html, "ceilings", "Against what the machine gives",
      std::string("Bytes read from the file each second by the best cell of each panel, with the "
                  "range of its rounds; small ticks below a bar are the other cells of that "
                  "panel. ") +
          (bound ? "Shares are of " + bound->name + ", " + si(bound->bytes_per_second, "B/s") + "."
                 : "No ceiling was measured.") +
          (beyond.empty() ? "" : " Beyond this scale: " + beyond + "."));
  chart.label = "Bytes read each second by the best cell of each panel, and ceilings";
  chart.axis_title = "bytes read from the file per second";
  chart.tick_text = [](double value) { return value == 0 ? "0" : tick_text(si(value, "B/s")); };
  html.open("figure").open("div", {{"class", "scroll"}});
  html.add(draw_bar_chart(chart)).close().close().close();
  return html;
}

Markup hit_rate_section(const Results& results) {
  return modelled_section(results, kHitRate, "Hit rate",
                          "The share of samples that needed no chunk to be loaded. Upper number "
                          "measured, lower number predicted; of each source, the cells with the "
                          "most threads.");
}

Markup amplification_section(const Results& results) {
  return modelled_section(results, kAmplification, "Read amplification",
                          "Bytes read from the file for each byte delivered; fewer are better, and "
                          "lighter. Upper number measured, lower number predicted; of each source, "
                          "the cells with the most threads.");
}

Markup model_section(const Results& results) {
  Markup html;
  const Markup hits = agreement_figure(results, kHitRate);
  const Markup amplification = agreement_figure(results, kAmplification);
  if (hits.str().empty() && amplification.str().empty()) return html;
  begin_section(html, "model", "Model and measurement",
                "Every cell for which both are known: on the dashed line the prediction is right.");
  html.open("div", {{"class", "panels"}}).add(hits).add(amplification).close().close();
  return html;
}

Markup shuffle_section(const Results& results) {
  Markup html;
  if (results.shuffle.empty()) return html;
  std::map<std::pair<std::string, std::int64_t>, std::vector<const ShufflePoint*>> series;
  std::set<std::int64_t> windows;
  std::set<std::string> orders;
  for (const ShufflePoint& point : results.shuffle) {
    series[{point.order, point.chunk_bytes}].push_back(&point);
    windows.insert(point.window_bytes);
    orders.insert(point.order);
  }
  std::vector<std::string> names;
  for (auto& [key, points] : series) {
    std::stable_sort(points.begin(), points.end(), [](const auto* a, const auto* b) {
      return a->window_bytes < b->window_bytes;
    });
    names.push_back(size_text(key.second) + " chunks" +
                    (orders.size() > 1 ? ", " + order_text(key.first) : ""));
  }

  /// The fastest cell with such a window.
  const auto speed_at = [&](const ShufflePoint& point) -> const Cell* {
    const Cell* best = nullptr;
    for (const Cell& cell : results.cells) {
      if (has_speed(cell) && cell.source != "h5dread" && cell.order == point.order &&
          cell.chunk_bytes == point.chunk_bytes && cell.cache_bytes == point.window_bytes &&
          (best == nullptr ||
           cell.images_per_second->spread.median > best->images_per_second->spread.median)) {
        best = &cell;
      }
    }
    return best;
  };
  const auto hover_of_point = [&](const ShufflePoint& point) {
    std::string text = size_text(point.window_bytes) + " window, " + size_text(point.chunk_bytes) +
                       " chunks, " + order_text(point.order) + " order" +
                       (point.chosen ? " (chosen)" : "");
    if (point.label_entropy) {
      text += "\nlabel entropy " + percent_text(*point.label_entropy) + " of a global shuffle";
    }
    if (point.same_chunk_pairs) {
      text += "\nsame-chunk pairs " + times_text(*point.same_chunk_pairs) + " a global shuffle";
    }
    if (const Cell* const cell = speed_at(point)) {
      text += "\n" + rounded(cell->images_per_second->spread.median) + " images/s (" +
              reader_text(cell->source, cell->threads) + ")";
    }
    return text;
  };
  const auto figure = [&](const std::string& caption, const std::string& y_title,
                          const std::function<std::string(double)>& y_text,
                          const std::function<std::optional<double>(const ShufflePoint&)>& value,
                          const std::function<Axis(const Ends&)>& y_axis, bool level) {
    PointChart chart;
    Ends ends;
    std::size_t s = 0;
    for (const auto& [key, points] : series) {
      Series line{names[s++], {}};
      for (const ShufflePoint* const point : points) {
        const std::optional<double> y = value(*point);
        if (!y) continue;
        ends.add(*y);
        line.points.push_back(
            {static_cast<double>(point->window_bytes), *y, hover_of_point(*point), point->chosen});
      }
      chart.series.push_back(std::move(line));
    }
    if (!ends.any()) return;
    chart.label = caption + " over window size, a line for each chunk size";
    chart.x = Axis::logarithmic(static_cast<double>(*windows.begin()),
                                static_cast<double>(*windows.rbegin()));
    for (const std::int64_t window : windows) {
      chart.x_ticks.push_back(static_cast<double>(window));
    }
    chart.x_title = "window";
    chart.x_text = [](double bytes) { return size_text(static_cast<std::int64_t>(bytes)); };
    chart.y = y_axis(ends);
    chart.y_title = y_title;
    chart.y_text = y_text;
    chart.joined = true;
    if (level) chart.level = 1;
    html.open("figure").leaf("figcaption", caption).add(draw_point_chart(chart)).close();
  };

  const bool any_chosen = std::any_of(results.shuffle.begin(), results.shuffle.end(),
                                      [](const ShufflePoint& point) { return point.chosen; });
  begin_section(html, "shuffle", "Shuffle quality and what it costs",
                std::string("A larger window mixes more chunks into a batch, and takes more "
                            "memory. The dashed lines are a global shuffle.") +
                    (any_chosen ? " The ring marks the chosen window." : ""));
  html.add(series_legend(names));
  html.open("div", {{"class", "panels"}});
  figure(
      "Label entropy of batches", "of a global shuffle", tick_percent,
      [](const ShufflePoint& point) { return point.label_entropy; },
      [](const Ends& ends) { return Axis::linear(ends.lowest, std::max(1.0, ends.highest)); },
      true);
  figure(
      "Pairs from the same chunk", "times those of a global shuffle", times_text,
      [](const ShufflePoint& point) { return point.same_chunk_pairs; },
      [](const Ends& ends) {
        const double lowest = std::min(1.0, ends.lowest);
        return lowest > 0 && ends.highest / lowest > 8
                   ? Axis::logarithmic(lowest, ends.highest)
                   : Axis::linear(lowest, std::max(1.0, ends.highest));
      },
      true);
  figure(
      "Speed", "images/s, best source", tick_si,
      [&](const ShufflePoint& point) -> std::optional<double> {
        const Cell* const cell = speed_at(point);
        if (cell == nullptr) return std::nullopt;
        return cell->images_per_second->spread.median;
      },
      [](const Ends& ends) { return Axis::linear(0, ends.highest); }, false);
  html.close().close();
  return html;
}

Markup stage_section(const Results& results) {
  struct Stage {
    const char* name;
    double StageSeconds::*seconds;
    const char* style;
  };
  static constexpr std::array<Stage, 6> kStages = {
      {{"plan", &StageSeconds::plan, "s4"},
       {"read", &StageSeconds::read, "s0"},
       {"decode", &StageSeconds::decode, "s1"},
       {"copy", &StageSeconds::copy, "s2"},
       {"wait for input", &StageSeconds::input_wait, "w0"},
       {"wait for free batches", &StageSeconds::output_wait, "w1"}}};
  Markup html;
  BarChart chart;
  for (const CellGroup& group : group_cells(results)) {
    if (!group.best || !results.cells[*group.best].stages) continue;
    const Cell& best = results.cells[*group.best];
    double sum = 0;
    for (const Stage& stage : kStages) sum += (*best.stages).*stage.seconds;
    if (sum <= 0) continue;
    Bar& bar = add_bar(chart, group, best);
    for (const Stage& stage : kStages) {
      const double seconds = (*best.stages).*stage.seconds;
      if (seconds <= 0) continue;
      const std::string text =
          std::string(stage.name) + ": " + rounded(seconds) + " s, " + percent_text(seconds / sum);
      bar.hover += (bar.hover.empty() ? "" : "\n") + text;
      bar.parts.push_back({seconds / sum, stage.style, text});
    }
    bar.hover = sizes_text(best) + "\n" + bar.hover;
    const std::optional<double> stall = stall_share(best);
    bar.text = rounded(sum) + " s" + (stall ? ", stall " + percent_text(*stall) : "");
  }
  if (chart.groups.empty()) return html;
  begin_section(html, "stages", "Where the workers' time goes",
                "Of the best cell of each panel: the seconds of all workers together in the median "
                "turn, by share. Waiting for free batches means that the consumer is the bound; "
                "stall is the share of the time that the consumer waited.");
  html.open("ul", {{"class", "key"}});
  for (const Stage& stage : kStages) {
    html.open("li").raw(R"(<svg class="swatch" aria-hidden="true" width="14" height="14">)");
    html.empty("rect", {{"class", stage.style}, {"width", "14"}, {"height", "14"}, {"rx", "2"}});
    html.raw("</svg>").text(stage.name).close();
  }
  html.close();
  chart.label = "Shares of the workers' time in the best cell of each panel";
  chart.axis_title = "share of the workers' time";
  chart.highest = 1;
  chart.exact_end = true;
  chart.tick_text = tick_percent;
  html.open("figure").open("div", {{"class", "scroll"}});
  html.add(draw_bar_chart(chart)).close().close().close();
  return html;
}

Markup story_section(const Results& results) {
  Markup html;
  if (results.story.empty()) return html;
  BarChart chart;
  chart.groups.emplace_back();
  for (const Rung& rung : results.story) {
    const Spread& speed = rung.images_per_second.spread;
    Bar bar;
    bar.title = rung.name;
    bar.parts = {{speed.median, "s0", ""}};
    bar.range = {speed.lowest, speed.highest};
    bar.text = rounded(speed.median) + ", stall " + percent_text(rung.stall);
    bar.hover = rung.name + "\n" + spread_text(rung.images_per_second, "images/s", false) +
                "\nstall " + percent_text(rung.stall);
    if (rung.read_amplification) {
      bar.hover += "\nread amplification " + times_text(*rung.read_amplification);
    }
    chart.highest = std::max(chart.highest, speed.highest);
    chart.groups.back().bars.push_back(std::move(bar));
  }
  begin_section(html, "story", "One step at a time",
                "The same images loaded in ways that build on each other, all measured in one "
                "run with a simulated training step. Stall is the share of the time that the step "
                "waited for images.");
  chart.label = "Images per second of each way of loading the same images";
  chart.axis_title = "images per second";
  chart.tick_text = tick_si;
  html.open("figure").open("div", {{"class", "scroll"}});
  html.add(draw_bar_chart(chart)).close().close().close();
  return html;
}

}  // namespace bench
