#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "chunkbench/number_format.hpp"
#include "chunkbench/ranking.hpp"
#include "chunkbench/sections.hpp"

namespace bench {
namespace {

/// Colours of values: dark violet for the worst, through teal, to light yellow for the best. Equal
/// steps look equally large, and the path grows lighter all the way, so that it survives
/// black-and-white printing and every kind of colour blindness. The choice of hues is that of
/// viridis.
///
/// Points at equal distances in OKLab (B. Ottosson, "A perceptual color space for image
/// processing", 2020) along a path through OKLCh: lightness 0.32 to 0.92, hue 304 to 106 degrees.
/// They are near enough to each other for straight lines in sRGB.
constexpr std::array<std::uint32_t, 17> kPath = {
    0x411a65, 0x422c75, 0x413c83, 0x3e4c8f, 0x355d96, 0x2c6d9b, 0x2a7c9c, 0x238c9e, 0x259b9d,
    0x37a897, 0x49b692, 0x5bc38b, 0x74ce80, 0x92d872, 0xb3df67, 0xd4e65d, 0xf3eb56};

/// "#3b528b". \param goodness  0 to 1; what is outside counts as the nearer end.
std::string colour_at(double goodness) {
  // In finer steps than 128, bytes that are rounded would not grow lighter all the way.
  const double along = std::round(std::clamp(goodness, 0.0, 1.0) * 128) / 8;
  const std::size_t i = std::min(static_cast<std::size_t>(along), kPath.size() - 2);
  const double part = along - static_cast<double>(i);
  std::uint32_t colour = 0;
  for (const int shift : {16, 8, 0}) {
    const auto channel = [shift](std::uint32_t of) {
      return static_cast<double>(of >> shift & 255U);
    };
    const double mixed = (1 - part) * channel(kPath[i]) + part * channel(kPath[i + 1]);
    colour = colour << 8U | static_cast<std::uint32_t>(std::lround(mixed));
  }
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), "#%06x", colour & 0xffffffU);
  return text.data();
}

/// Black or white, whichever can be read better on colour_at(goodness): at least 4.5:1 (WCAG AA).
/// They change where both have a contrast of sqrt(21):1.
const char* ink_at(double goodness) { return goodness > 0.387 ? "#000" : "#fff"; }

using ChunkShape = std::pair<std::int64_t, std::int64_t>;  // bytes, samples

ChunkShape chunk_of(const Cell& cell) { return {cell.chunk_bytes, cell.chunk_samples}; }

/// What a heat map shows of a cell of the sweep.
struct HeatCell {
  std::optional<double> goodness = {};  ///< Gives the colour, 0 to 1; absent: hatched.
  std::string text = {};
  std::string second = {};  ///< Below it, smaller; or empty.
  std::string marks = {};   ///< Classes of the style sheet: a status, "best", "tie".
};

/// A section with a panel for each group.
struct HeatMaps {
  std::string id;
  std::string title;
  std::string note;
  std::string worst = {};  ///< At the ends of the legend; empty: there are no values.
  std::string best = {};
  std::vector<CellGroup> groups = {};
  std::function<HeatCell(const CellGroup&, std::size_t)> show = {};
};

std::string times_text(double factor) {
  return (factor >= 1000 ? si(factor) : rounded(factor)) + " ×";
}

std::string modelled_text(const std::string& name, const Predicted& values,
                          std::string (*text)(double)) {
  if (!values.measured && !values.predicted) return "";
  return "\n" + name + " " + (values.measured ? text(*values.measured) : "not measured") +
         (values.predicted ? ", predicted " + text(*values.predicted) : "");
}

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
  text += modelled_text("hit rate", cell.hit_rate, percent_text) +
          modelled_text("read amplification", cell.read_amplification, times_text);
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

void add_cell(Markup& html, const HeatCell& cell, const std::string& hover) {
  if (cell.goodness) {
    html.open("td", {{"class", cell.marks},
                     {"style", "background:" + colour_at(*cell.goodness) +
                                   ";color:" + ink_at(*cell.goodness)},
                     {"title", hover}});
  } else {
    html.open("td", {{"class", cell.marks + " hatched"}, {"title", hover}});
  }
  html.text(cell.text);
  if (!cell.second.empty()) html.leaf("small", cell.second);
  html.close();
}

/// The panel of one group. All panels of a page have the rows and columns of all cells.
void add_panel(Markup& html, const Results& results, const CellGroup& group, const HeatMaps& maps) {
  const std::optional<Bound> bound = bound_of(results);
  std::set<ChunkShape> chunks;
  std::set<std::int64_t> caches;
  for (const Cell& cell : results.cells) {
    chunks.insert(chunk_of(cell));
    caches.insert(cell.cache_bytes);
  }
  std::map<std::pair<std::int64_t, ChunkShape>, std::size_t> cells;
  for (const std::size_t i : group.cells) {
    cells[{results.cells[i].cache_bytes, chunk_of(results.cells[i])}] = i;
  }
  const std::string reader = reader_text(group.source, group.threads);
  const std::string label = maps.title + " of " + reader + ", " + order_text(group.order) +
                            " order, over chunk and cache size";
  html.open("figure").leaf("figcaption", reader).open("div", {{"class", "scroll"}});
  html.open("table", {{"class", "heat"}, {"aria-label", label}}).open("thead").open("tr");
  html.leaf("th", {{"colspan", "2"}}, cache_word(group.source)).close().close().open("tbody");
  for (auto cache = caches.rbegin(); cache != caches.rend(); ++cache) {
    html.open("tr").leaf("th", {{"scope", "row"}}, size_text(*cache));
    for (const ChunkShape& chunk : chunks) {
      const auto found = cells.find({*cache, chunk});
      if (found != cells.end()) {
        add_cell(html, maps.show(group, found->second),
                 hover_of(results.cells[found->second], bound));
      } else {
        html.leaf("td", {{"class", "absent"}}, "");
      }
    }
    html.close();
  }
  html.close().open("tfoot").open("tr").leaf("th", "");
  for (const ChunkShape& chunk : chunks) {
    html.leaf("th", {{"scope", "col"}}, size_text(chunk.first));
  }
  html.close().open("tr").leaf("th", "");
  html.leaf("th", {{"colspan", std::to_string(chunks.size())}}, "chunk size");
  html.close().close().close().close().close();
}

void add_legend(Markup& html, const HeatMaps& maps) {
  std::string gradient = "background:linear-gradient(to right";
  for (int i = 0; i <= 16; ++i) gradient += "," + colour_at(i / 16.0);
  html.open("p", {{"class", "legend"}}).text(maps.title + " " + maps.worst + " ");
  html.leaf("i", {{"style", gradient + ")"}}, "").text(" " + maps.best).close();
}

/// The panels are under a heading for each order.
void add_section(Markup& html, const Results& results, const HeatMaps& maps) {
  html.begin_section(maps.id, maps.title, maps.note);
  if (!maps.best.empty()) add_legend(html, maps);
  std::string order;
  for (const CellGroup& group : maps.groups) {
    if (group.order != order) {
      if (!order.empty()) html.close();
      order = group.order;
      html.leaf("h3", order_text(order) + " order").open("div", {{"class", "panels"}});
    }
    add_panel(html, results, group, maps);
  }
  html.close().close();
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

/// A measure that the model predicts: the measured value, and the predicted one below it.
void add_modelled(Markup& html, const Results& results, HeatMaps maps,
                  const Predicted Cell::*member, std::string (*text)(double),
                  const std::function<double(double)>& goodness) {
  maps.note +=
      " Upper number measured, lower number predicted; of each source, the cells with the most "
      "threads.";
  maps.groups = with_most_threads(group_cells(results));
  const auto short_text = [text](double value) {
    std::string shortened = text(value);
    std::erase(shortened, ' ');
    return shortened;
  };
  maps.show = [&](const CellGroup&, std::size_t i) {
    const Cell& cell = results.cells[i];
    const Predicted& values = cell.*member;
    const std::optional<double> value = values.measured ? values.measured : values.predicted;
    HeatCell heat;
    if (value) heat.goodness = goodness(*value);
    heat.marks = to_string(value ? CellStatus::measured : cell.status);
    heat.text = values.measured   ? short_text(*values.measured)
                : value           ? "–"
                : has_speed(cell) ? "unknown"
                                  : status_text(cell.status);
    if (values.predicted) heat.second = short_text(*values.predicted);
    return heat;
  };
  add_section(html, results, maps);
}

/// What the cells have of a measure, ascending.
std::vector<double> values_of(const Results& results, const Predicted Cell::*member) {
  std::vector<double> values;
  for (const Cell& cell : results.cells) {
    for (const auto& value : {(cell.*member).measured, (cell.*member).predicted}) {
      if (value) values.push_back(*value);
    }
  }
  std::sort(values.begin(), values.end());
  return values;
}

}  // namespace

void add_speeds(Markup& html, const Results& results) {
  if (results.cells.empty()) return;
  const Cell* const best = fastest(results.cells, has_speed);
  // From 0, not from the slowest: what matters is how far from the best a cell is.
  const double highest = best != nullptr ? median_speed(*best) : 0;
  HeatMaps maps = {
      .id = "speed",
      .title = "Images per second",
      .note =
          "Median of the rounds; lighter is faster, on one scale for all panels. Point at a "
          "cell for its range and what else is known of it. Ring: the best of its panel. Dot: "
          "its range meets that of the best, so it is as good for all this run can tell. "
          "Dashed: pruned, that is, stopped early, since its rank was certain. Hatched: "
          "failed, skipped, or not measured to the end.",
      .groups = group_cells(results)};
  if (best != nullptr) {
    maps.worst = "0";
    maps.best = si(highest);
  }
  maps.show = [&](const CellGroup& group, std::size_t i) {
    const Cell& cell = results.cells[i];
    HeatCell heat = {.text = status_text(cell.status),
                     .marks = std::string(to_string(cell.status))};
    if (!has_speed(cell)) return heat;
    heat.goodness = highest > 0 ? median_speed(cell) / highest : 1;
    heat.text = si(median_speed(cell));
    if (i == group.best) {
      heat.marks += " best";
    } else if (may_be_as_fast(cell, results.cells[*group.best])) {
      heat.marks += " tie";
    }
    return heat;
  };
  add_section(html, results, maps);
}

void add_hit_rates(Markup& html, const Results& results) {
  if (values_of(results, &Cell::hit_rate).empty()) return;
  add_modelled(html, results,
               {.id = "hits",
                .title = "Hit rate",
                .note = "The share of samples that needed no chunk to be loaded.",
                .worst = "0 %",
                .best = "100 %"},
               &Cell::hit_rate, percent_text, [](double rate) { return rate; });
}

void add_amplifications(Markup& html, const Results& results) {
  const std::vector<double> values = values_of(results, &Cell::read_amplification);
  if (values.empty()) return;
  // From 1 to 2 at least, so that noise around 1 has one colour. Equal ratios are equal steps.
  const double lowest = std::clamp(values.front(), 0.01, 1.0);
  const double highest = std::max(values.back(), 2.0);
  add_modelled(
      html, results,
      {.id = "amplification",
       .title = "Read amplification",
       .note = "Bytes read from the file for each byte delivered; fewer are better, and lighter.",
       .worst = times_text(highest),
       .best = times_text(lowest)},
      &Cell::read_amplification, times_text, [&](double factor) {
        return std::log(highest / std::max(factor, lowest)) / std::log(highest / lowest);
      });
}

}  // namespace bench
