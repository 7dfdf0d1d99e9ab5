#include "chunkbench/table_sections.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "chunkbench/number_format.hpp"
#include "chunkbench/ranking.hpp"
#include "cli/progress_text.hpp"

namespace bench {
namespace {

struct Column {
  const char* title;
  bool text = false;  ///< Left-aligned.
};

void begin_table(Markup& html, const std::vector<Column>& columns) {
  html.open("div", {{"class", "scroll"}}).open("table").open("thead").open("tr");
  for (const Column& column : columns) {
    if (column.text) {
      html.leaf("th", {{"scope", "col"}, {"class", "n"}}, column.title);
    } else {
      html.leaf("th", {{"scope", "col"}}, column.title);
    }
  }
  html.close().close().open("tbody");
}

void end_table(Markup& html) { html.close().close().close(); }

void open_row(Markup& html, bool stands_out) {
  html.open("tr", {{"class", stands_out ? "top" : ""}});
}

/// Text on the left.
void name(Markup& html, const std::string& text) { html.leaf("td", {{"class", "n"}}, text); }

/// A number with a bar below it that is as long as `share` of the widest one. Beyond that: none.
void bar(Markup& html, double number, double share, const std::string& text) {
  const std::string width = coordinate(share <= 1 ? 100 * share : 0);
  html.leaf("td",
            {{"class", "bar"},
             {"data-v", nlohmann::json(number).dump()},
             {"style", "background-size:" + width + "% 4px"}},
            text);
}

/// A number, or an empty cell.
void value(Markup& html, const std::optional<double>& number, std::string (*text)(double)) {
  html.leaf("td", number ? text(*number) : std::string());
}

void both(Markup& html, const Predicted& values, std::string (*text)(double)) {
  value(html, values.predicted, text);
  value(html, values.measured, text);
}

std::optional<double> median(const std::optional<Sampled>& sampled) {
  if (!sampled) return std::nullopt;
  return sampled->spread.median;
}

std::string bytes_rate(double value) { return si(value, "B/s"); }

struct Stage {
  const char* name;
  double StageSeconds::*seconds;
};
constexpr std::array<Stage, 6> kStages = {
    {{"planning", &StageSeconds::plan},
     {"reading", &StageSeconds::read},
     {"decoding", &StageSeconds::decode},
     {"copying", &StageSeconds::copy},
     {"waiting for input", &StageSeconds::input_wait},
     {"waiting for free batches", &StageSeconds::output_wait}}};

/// A column for each stage: its share of the workers' time.
void stage_shares(Markup& html, const std::optional<StageSeconds>& stages) {
  double sum = 0;
  for (const Stage& stage : kStages) sum += stages ? (*stages).*stage.seconds : 0;
  for (const Stage& stage : kStages) {
    html.leaf("td", sum > 0 ? percent_text((*stages).*stage.seconds / sum) : std::string());
  }
}

/// What a best cell is compared with.
struct Level {
  std::string name;
  double bytes_per_second = 0;
  std::string text;
};

std::vector<Level> levels_of(const Results& results) {
  std::vector<Level> levels;
  for (const Ceiling& ceiling : results.ceilings) {
    levels.push_back({ceiling.name, ceiling.bytes_per_second.spread.median,
                      spread_text(ceiling.bytes_per_second, bytes_rate)});
  }
  const std::optional<ShapedDisk>& limit = results.options.limit;
  if (limit && limit->bytes_per_second) {
    levels.push_back({"limit (" + limit->profile + ")", *limit->bytes_per_second,
                      bytes_rate(*limit->bytes_per_second)});
  }
  return levels;
}

/// The fastest cell with that chunk and window.
const Cell* fastest_with(const Results& results, const ShufflePoint& point) {
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
}

}  // namespace

Markup best_section(const Results& results) {
  Markup html;
  const std::vector<CellGroup> groups = group_cells(results);
  const std::optional<Bound> bound = bound_of(results);
  double widest = 0;
  for (const CellGroup& group : groups) {
    if (!group.best) continue;
    widest = std::max(widest, median(results.cells[*group.best].bytes_per_second).value_or(0));
  }
  if (widest <= 0) return html;
  const std::vector<Level> levels = levels_of(results);
  // The memory is often ten times as fast: drawn to scale it would leave no room for the others.
  const double most = 2.5 * widest;
  for (const Level& level : levels) {
    if (level.bytes_per_second <= most) widest = std::max(widest, level.bytes_per_second);
  }
  html.begin_section(
      "best", "The best of each panel",
      "What the best cells read from the file each second, and where the time of their workers "
      "goes. " +
          (bound ? "Shares are of " + bound->name + ", " + bytes_rate(bound->bytes_per_second) + "."
                 : "No ceiling was measured.") +
          " Stall is the share of the time that the consumer waited; workers that wait for free "
          "batches have a consumer that is the bound.");
  std::vector<Column> columns = {{"order", true}, {"source", true}, {"chunk"},        {"cache"},
                                 {"images/s"},    {"read"},         {"of the bound"}, {"stall"}};
  for (const Stage& stage : kStages) columns.push_back({stage.name});
  begin_table(html, columns);
  for (const CellGroup& group : groups) {
    if (!group.best || !results.cells[*group.best].bytes_per_second) continue;
    const Cell& cell = results.cells[*group.best];
    html.open("tr");
    name(html, order_text(cell.order));
    name(html, reader_text(cell.source, cell.threads));
    html.leaf("td", size_text(cell.chunk_bytes));
    html.leaf("td", size_text(cell.cache_bytes));
    value(html, median(cell.images_per_second), rounded);
    const double read = cell.bytes_per_second->spread.median;
    bar(html, read, read / widest, spread_text(*cell.bytes_per_second, bytes_rate));
    value(html, share_of_bound(cell, bound), percent_text);
    value(html, stall_share(cell), percent_text);
    stage_shares(html, cell.stages);
    html.close();
  }
  for (const Level& level : levels) {
    html.open("tr", {{"class", "level"}});
    html.leaf("td", {{"class", "n"}, {"colspan", "5"}}, level.name);
    bar(html, level.bytes_per_second, level.bytes_per_second / widest, level.text);
    html.leaf("td", {{"colspan", std::to_string(2 + kStages.size())}}, "").close();
  }
  end_table(html);
  html.close();
  return html;
}

Markup cell_section(const Results& results) {
  Markup html;
  if (results.cells.empty()) return html;
  const std::optional<Bound> bound = bound_of(results);
  const std::optional<std::size_t> best = best_cell(results);
  html.open("section", {{"id", "cells"}}).leaf("h2", "All numbers").open("details");
  html.leaf("summary", plural(static_cast<std::int64_t>(results.cells.size()), "cell"));
  begin_table(html, {{"order", true},    {"source", true},
                     {"threads"},        {"chunk"},
                     {"images a chunk"}, {"cache"},
                     {"status", true},   {"images/s"},
                     {"lowest"},         {"highest"},
                     {"rounds"},         {"read"},
                     {"of the bound"},   {"hit rate, predicted"},
                     {"measured"},       {"amplification, predicted"},
                     {"measured"},       {"chunk loads, predicted"},
                     {"measured"},       {"stall"},
                     {"reason", true}});
  for (std::size_t i = 0; i < results.cells.size(); ++i) {
    const Cell& cell = results.cells[i];
    open_row(html, best == i);
    name(html, order_text(cell.order));
    name(html, cell.source);
    html.leaf("td", cli::format_count(cell.threads));
    html.leaf("td", size_text(cell.chunk_bytes));
    html.leaf("td", cli::format_count(cell.chunk_samples));
    html.leaf("td", size_text(cell.cache_bytes));
    name(html, std::string(to_string(cell.status)));
    const std::optional<Sampled>& speed = cell.images_per_second;
    value(html, median(speed), rounded);
    html.leaf("td", speed ? rounded(speed->spread.lowest) : std::string());
    html.leaf("td", speed ? rounded(speed->spread.highest) : std::string());
    html.leaf("td", speed ? cli::format_count(speed->count) : std::string());
    value(html, median(cell.bytes_per_second), bytes_rate);
    value(html, share_of_bound(cell, bound), percent_text);
    both(html, cell.hit_rate, percent_text);
    both(html, cell.read_amplification, rounded);
    both(html, cell.chunk_loads, rounded);
    value(html, stall_share(cell), percent_text);
    if (cell.reason.empty()) {
      html.leaf("td", "");
    } else {
      html.leaf("td", {{"class", "r"}}, cell.reason);
    }
    html.close();
  }
  end_table(html);
  html.close().close();
  return html;
}

Markup shuffle_section(const Results& results) {
  Markup html;
  if (results.shuffle.empty()) return html;
  html.begin_section("shuffle", "Shuffle quality and what it costs",
                     "A larger window mixes more chunks into a batch, and takes more memory. "
                     "Beside it, the speed of the fastest source with such a window.");
  begin_table(html, {{"order", true},
                     {"chunk"},
                     {"window"},
                     {"label entropy, of a global shuffle"},
                     {"same-chunk pairs, times a global shuffle"},
                     {"images/s"},
                     {"choice", true}});
  for (const ShufflePoint& point : results.shuffle) {
    const Cell* const cell = fastest_with(results, point);
    open_row(html, point.chosen);
    name(html, order_text(point.order));
    html.leaf("td", size_text(point.chunk_bytes));
    html.leaf("td", size_text(point.window_bytes));
    value(html, point.label_entropy, percent_text);
    value(html, point.same_chunk_pairs, rounded);
    value(html, cell != nullptr ? median(cell->images_per_second) : std::nullopt, rounded);
    name(html, point.chosen ? "chosen" : "");
    html.close();
  }
  end_table(html);
  html.close();
  return html;
}

Markup ladder_section(const Results& results) {
  Markup html;
  if (results.ladder.empty()) return html;
  double widest = 0;
  for (const MeasuredVariant& variant : results.ladder) {
    widest = std::max(widest, variant.images_per_second.spread.median);
  }
  html.begin_section("ladder", "One step at a time",
                     "The same images loaded in ways that build on each other, all measured in one "
                     "run with a simulated training step. Stall is the share of the time that the "
                     "step waited for images.");
  begin_table(html, {{"way", true},
                     {"images/s"},
                     {"lowest"},
                     {"highest"},
                     {"rounds"},
                     {"stall"},
                     {"read amplification"}});
  for (const MeasuredVariant& variant : results.ladder) {
    const Sampled& speed = variant.images_per_second;
    html.open("tr");
    name(html, variant.name);
    bar(html, speed.spread.median, widest > 0 ? speed.spread.median / widest : 0,
        rounded(speed.spread.median));
    html.leaf("td", rounded(speed.spread.lowest));
    html.leaf("td", rounded(speed.spread.highest));
    html.leaf("td", cli::format_count(speed.count));
    html.leaf("td", percent_text(variant.stall));
    value(html, variant.read_amplification, rounded);
    html.close();
  }
  end_table(html);
  html.close();
  return html;
}

}  // namespace bench
