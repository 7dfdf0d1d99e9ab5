#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "chunkbench/number_format.hpp"
#include "chunkbench/ranking.hpp"
#include "chunkbench/sections.hpp"
#include "cli/progress_text.hpp"

namespace bench {
namespace {

struct Column {
  const char* title;
  bool text = false;  ///< Left-aligned.
  bool bar = false;   ///< With the bar of its row below the number.
};

struct Row {
  std::vector<std::string> fields = {};
  double length = 0;  ///< Of its bar, before they are drawn to one scale; 0: none.
  const char* kind = "";
};

void add_table(Markup& html, const std::vector<Column>& columns, const std::vector<Row>& rows) {
  double longest = 0;
  for (const Row& row : rows) longest = std::max(longest, row.length);
  html.open("div", {{"class", "scroll"}}).open("table").open("thead").open("tr");
  for (const Column& column : columns) {
    html.leaf("th", {{"class", column.text ? "n" : ""}}, column.title);
  }
  html.close().close().open("tbody");
  for (const Row& row : rows) {
    html.open("tr", {{"class", row.kind}});
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (columns[i].bar && row.length > 0) {
        std::array<char, 64> style{};
        std::snprintf(style.data(), style.size(), "background-size:%.2f%% 4px",
                      100 * row.length / longest);
        html.leaf("td", {{"class", "bar"}, {"style", style.data()}}, row.fields[i]);
      } else {
        html.leaf("td", {{"class", columns[i].text ? "n" : ""}}, row.fields[i]);
      }
    }
    html.close();
  }
  html.close().close().close();
}

/// A number, or an empty field.
std::string value(const std::optional<double>& number, std::string (*text)(double)) {
  return number ? text(*number) : "";
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

/// A field for each stage: its share of the workers' time.
void add_stage_shares(const std::optional<StageSeconds>& stages, Row& row) {
  double sum = 0;
  for (const Stage& stage : kStages) sum += stages ? (*stages).*stage.seconds : 0;
  for (const Stage& stage : kStages) {
    row.fields.push_back(sum > 0 ? percent_text((*stages).*stage.seconds / sum) : "");
  }
}

/// What a best cell is compared with. Without a bar if it is far beyond the cells: the memory is
/// often ten times as fast, and would leave no room for the others.
Row level_row(const std::string& name, double bytes_per_second, const std::string& text,
              double fastest_cell) {
  Row row = {.fields = {name, "", "", "", "", text},
             .length = bytes_per_second <= 2.5 * fastest_cell ? bytes_per_second : 0,
             .kind = "level"};
  row.fields.resize(8 + kStages.size());
  return row;
}

}  // namespace

void add_best_cells(Markup& html, const Results& results) {
  const std::optional<Bound> bound = bound_of(results);
  std::vector<Row> rows;
  double most = 0;
  for (const CellGroup& group : group_cells(results)) {
    if (!group.best || !results.cells[*group.best].bytes_per_second) continue;
    const Cell& cell = results.cells[*group.best];
    const double read = cell.bytes_per_second->spread.median;
    most = std::max(most, read);
    rows.push_back(
        {{order_text(cell.order), reader_text(cell.source, cell.threads),
          size_text(cell.chunk_bytes), size_text(cell.cache_bytes), rounded(median_speed(cell)),
          spread_text(*cell.bytes_per_second, bytes_rate),
          value(share_of_bound(cell, bound), percent_text), value(stall_share(cell), percent_text)},
         read});
    add_stage_shares(cell.stages, rows.back());
  }
  if (most <= 0) return;
  for (const Ceiling& ceiling : results.ceilings) {
    rows.push_back(level_row(ceiling.name, ceiling.bytes_per_second.spread.median,
                             spread_text(ceiling.bytes_per_second, bytes_rate), most));
  }
  const std::optional<ShapedDisk>& limit = results.options.limit;
  if (limit && limit->bytes_per_second) {
    rows.push_back(level_row("limit (" + limit->profile + ")", *limit->bytes_per_second,
                             bytes_rate(*limit->bytes_per_second), most));
  }
  html.begin_section(
      "best", "The best of each panel",
      "What the best cells read from the file each second, and where the time of their workers "
      "goes. " +
          (bound ? "Shares are of " + bound->name + ", " + bytes_rate(bound->bytes_per_second) + "."
                 : "No ceiling was measured.") +
          " Stall is the share of the time that the consumer waited; workers that wait for free "
          "batches have a consumer that is the bound.");
  std::vector<Column> columns = {{.title = "order", .text = true},
                                 {.title = "source", .text = true},
                                 {"chunk"},
                                 {"cache"},
                                 {"images/s"},
                                 {.title = "read", .bar = true},
                                 {"of the bound"},
                                 {"stall"}};
  for (const Stage& stage : kStages) columns.push_back({stage.name});
  add_table(html, columns, rows);
  html.close();
}

void add_shuffle_quality(Markup& html, const Results& results) {
  if (results.shuffle.empty()) return;
  std::vector<Row> rows;
  for (const ShufflePoint& point : results.shuffle) {
    const Cell* const cell = fastest(results.cells, [&](const Cell& other) {
      return has_speed(other) && other.source != "h5dread" && other.order == point.order &&
             other.chunk_bytes == point.chunk_bytes && other.cache_bytes == point.window_bytes;
    });
    rows.push_back(
        {.fields = {order_text(point.order), size_text(point.chunk_bytes),
                    size_text(point.window_bytes), value(point.label_entropy, percent_text),
                    value(point.same_chunk_pairs, rounded),
                    cell != nullptr ? rounded(median_speed(*cell)) : "",
                    point.chosen ? "chosen" : ""},
         .kind = point.chosen ? "top" : ""});
  }
  html.begin_section("shuffle", "Shuffle quality and what it costs",
                     "A larger window mixes more chunks into a batch, and takes more memory. "
                     "Beside it, the speed of the fastest source with such a window.");
  add_table(html,
            {{.title = "order", .text = true},
             {"chunk"},
             {"window"},
             {"label entropy, of a global shuffle"},
             {"same-chunk pairs, times a global shuffle"},
             {"images/s"},
             {.title = "choice", .text = true}},
            rows);
  html.close();
}

void add_ladder(Markup& html, const Results& results) {
  if (results.ladder.empty()) return;
  std::vector<Row> rows;
  for (const MeasuredVariant& variant : results.ladder) {
    const Sampled& speed = variant.images_per_second;
    rows.push_back({{variant.name, rounded(speed.spread.median), rounded(speed.spread.lowest),
                     rounded(speed.spread.highest), cli::format_count(speed.count),
                     percent_text(variant.stall), value(variant.read_amplification, rounded)},
                    speed.spread.median});
  }
  html.begin_section("ladder", "One step at a time",
                     "The same images loaded in ways that build on each other, all measured in one "
                     "run with a simulated training step. Stall is the share of the time that the "
                     "step waited for images.");
  add_table(html,
            {{.title = "way", .text = true},
             {.title = "images/s", .bar = true},
             {"lowest"},
             {"highest"},
             {"rounds"},
             {"stall"},
             {"read amplification"}},
            rows);
  html.close();
}

}  // namespace bench
