#include "report_tables.hpp"

#include <functional>
#include <initializer_list>
#include <optional>
#include <string>

#include "quantity.hpp"
#include "ranking.hpp"

namespace bench {
namespace {

struct Column {
  const char* title;
  bool text = false;  ///< Left-aligned.
};

void begin_table(Markup& html, std::initializer_list<Column> columns) {
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

/// Text on the left.
void name(Markup& html, const std::string& text) { html.leaf("td", {{"class", "n"}}, text); }

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

}  // namespace

Markup cell_table(const Results& results) {
  const std::optional<Bound> bound = bound_of(results);
  const std::optional<std::size_t> best = best_cell(results);
  Markup html;
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
    if (best == i) {
      html.open("tr", {{"class", "top"}});
    } else {
      html.open("tr");
    }
    name(html, order_text(cell.order));
    name(html, cell.source);
    html.leaf("td", count_text(cell.threads));
    html.leaf("td", size_text(cell.chunk_bytes));
    html.leaf("td", count_text(cell.chunk_samples));
    html.leaf("td", size_text(cell.cache_bytes));
    name(html, std::string(to_string(cell.status)));
    const std::optional<Sampled>& speed = cell.images_per_second;
    value(html, median(speed), rounded);
    html.leaf("td", speed ? rounded(speed->spread.lowest) : std::string());
    html.leaf("td", speed ? rounded(speed->spread.highest) : std::string());
    html.leaf("td", speed ? count_text(speed->count) : std::string());
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
  return html;
}

Markup shuffle_table(const Results& results) {
  Markup html;
  begin_table(html, {{"order", true},
                     {"chunk"},
                     {"window"},
                     {"label entropy, of a global shuffle"},
                     {"same-chunk pairs, times a global shuffle"},
                     {"choice", true}});
  for (const ShufflePoint& point : results.shuffle) {
    html.open("tr");
    name(html, order_text(point.order));
    html.leaf("td", size_text(point.chunk_bytes));
    html.leaf("td", size_text(point.window_bytes));
    value(html, point.label_entropy, percent_text);
    value(html, point.same_chunk_pairs, rounded);
    name(html, point.chosen ? "chosen" : "");
    html.close();
  }
  end_table(html);
  return html;
}

Markup story_table(const Results& results) {
  Markup html;
  begin_table(html, {{"way", true},
                     {"images/s"},
                     {"lowest"},
                     {"highest"},
                     {"rounds"},
                     {"stall"},
                     {"read amplification"}});
  for (const Rung& rung : results.story) {
    html.open("tr");
    name(html, rung.name);
    const Sampled& speed = rung.images_per_second;
    for (const double number : {speed.spread.median, speed.spread.lowest, speed.spread.highest}) {
      html.leaf("td", rounded(number));
    }
    html.leaf("td", count_text(speed.count));
    html.leaf("td", percent_text(rung.stall));
    value(html, rung.read_amplification, rounded);
    html.close();
  }
  end_table(html);
  return html;
}

}  // namespace bench
