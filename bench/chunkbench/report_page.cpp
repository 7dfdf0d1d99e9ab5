#include "chunkbench/report_page.hpp"

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "chunkbench/markup.hpp"
#include "chunkbench/number_format.hpp"
#include "chunkbench/report_style.hpp"
#include "chunkbench/results_files.hpp"
#include "chunkbench/sections.hpp"
#include "chunkbench/verdict.hpp"
#include "cli/atomic_file.hpp"
#include "cli/progress_text.hpp"
#include "cli/text_layout.hpp"

namespace bench {
namespace {

using Json = nlohmann::ordered_json;
using Facts = std::vector<std::pair<std::string, std::string>>;

// Neither what the page says nor what is in the results can make a browser fetch or run anything.
// Without an icon browsers ask the server for one.
constexpr const char* kHead = R"html(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"/>
<meta name="viewport" content="width=device-width,initial-scale=1"/>
<meta name="color-scheme" content="light dark"/>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:"/>
<link rel="icon" href="data:,"/>
)html";

std::string shape_text(const std::vector<std::int64_t>& shape) {
  if (shape.empty()) return "unknown";
  const auto length = [](std::int64_t axis) { return std::to_string(axis); };
  return cli::format_count(shape.front()) + (shape.size() > 1 ? " of " : "") +
         cli::joined(std::span(shape).subspan(1), "×", length);
}

std::string limit_text(const ShapedDisk& limit) {
  std::string text = limit.profile;
  if (limit.bytes_per_second) text += ", " + si(*limit.bytes_per_second, "B/s");
  if (limit.request_seconds)
    text += ", " + rounded(*limit.request_seconds * 1000) + " ms a request";
  if (limit.queue_depth) text += ", " + plural(*limit.queue_depth, "request") + " at a time";
  return text;
}

/// Named by the program that measured.
std::string page_title(const Results& results) {
  const bool is_of_ladder = results.cells.empty() && !results.ladder.empty();
  return (is_of_ladder ? "ladder: " : "chunkbench: ") + results.dataset.name;
}

void add_head(Markup& html, const Results& results) {
  html.open("header").leaf("h1", page_title(results));
  std::vector<std::string> parts = {results.created, shape_text(results.dataset.shape) + " images",
                                    size_text(results.dataset.bytes)};
  if (!results.cells.empty()) {
    parts.push_back(plural(static_cast<std::int64_t>(results.cells.size()), "cell"));
    parts.push_back(plural(results.options.rounds, "round"));
    parts.emplace_back(results.options.cold ? "cold page cache" : "warm page cache");
  }
  if (results.options.limit) parts.push_back("disk as " + results.options.limit->profile);
  html.leaf("p", {{"class", "meta"}}, cli::joined(parts, " · ")).close();
  for (const std::string& warning : warnings_of(results)) {
    html.leaf("p", {{"class", "warning"}, {"role", "note"}}, warning);
  }
}

void add_verdict(Markup& html, const Results& results) {
  if (results.cells.empty() && !results.ladder.empty()) return;
  const Verdict verdict = verdict_of(results);
  html.open("div", {{"class", "verdict"}});
  html.leaf("p", {{"class", "headline"}}, verdict.headline);
  if (!verdict.detail.empty()) html.leaf("p", verdict.detail);
  html.close();
}

std::string scalar_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

Facts facts_of(const Json& machine) {
  // What is larger is no size of a machine, and shown as the number that it is.
  constexpr std::uint64_t kMaxShownBytes = std::uint64_t{1} << 60U;
  Facts facts;
  for (const auto& [key, value] : machine.items()) {
    std::string name = key;
    std::string text;
    if (value.is_array()) {
      text = cli::joined(value, "\n", scalar_text);
    } else if (key.ends_with("_bytes") && value.is_number_integer() &&
               value.get<std::uint64_t>() <= kMaxShownBytes) {
      text = size_text(value.get<std::int64_t>());
      name.resize(name.rfind('_'));
    } else {
      text = scalar_text(value);
    }
    for (char& c : name) c = c == '_' ? ' ' : c;
    facts.emplace_back(std::move(name), std::move(text));
  }
  return facts;
}

Facts option_facts(const Results& results) {
  const SweepSettings& options = results.options;
  const std::string filters = cli::joined(results.dataset.filters, ", ");
  Facts facts = {{"filters", filters.empty() ? "none" : filters},
                 {"batch size", cli::format_count(options.batch_size)},
                 {"seed", std::to_string(options.seed)}};
  if (options.images_per_trial) {
    facts.emplace_back("images a trial", cli::format_count(*options.images_per_trial));
  }
  facts.emplace_back("limit of the disk", options.limit ? limit_text(*options.limit) : "none");
  facts.emplace_back("limit of the device", options.throttled_device.value_or("none"));
  facts.emplace_back("limit of memory",
                     options.memory_limit ? size_text(*options.memory_limit) : "none");
  if (results.time.seconds_total > 0) {
    const double share = results.time.seconds_measured / results.time.seconds_total;
    facts.emplace_back("time", cli::format_duration(results.time.seconds_total) + ", " +
                                   percent_text(share) + " of it in measured trials");
  }
  if (results.time.seconds_preparing > 0) {
    facts.emplace_back("time for the files", cli::format_duration(results.time.seconds_preparing));
  }
  return facts;
}

void add_facts(Markup& html, const std::string& title, const Facts& facts) {
  if (facts.empty()) return;
  html.open("section").leaf("h3", title).open("dl");
  for (const auto& [name, text] : facts) html.leaf("dt", name).leaf("dd", text);
  html.close().close();
}

void add_run_metadata(Markup& html, const Results& results) {
  html.open("section", {{"id", "run"}}).leaf("h2", "How it was measured");
  html.open("div", {{"class", "facts"}});
  add_facts(html, "Machine", facts_of(results.machine));
  add_facts(html, "Options", option_facts(results));
  add_facts(html, "Versions", facts_of(results.versions));
  html.close();
  if (!results.options.notes.empty()) {
    html.leaf("h3", "Notes").open("ul", {{"class", "notes"}});
    for (const std::string& note : results.options.notes) html.leaf("li", note);
    html.close();
  }
  html.close();
}

/// For a spreadsheet.
void add_numbers(Markup& html, const Results& results) {
  if (results.cells.empty()) return;
  html.open("details", {{"id", "cells"}}).leaf("summary", "All numbers, as CSV");
  html.leaf("pre", to_csv(results)).close();
}

}  // namespace

std::size_t write_report_page(const Results& results, const std::string& path, bool force) {
  Markup html;
  html.raw(kHead).leaf("title", page_title(results));
  html.raw("<style>").raw(kReportStyle).raw("</style>\n</head>\n<body>");
  add_head(html, results);
  html.open("main");
  add_verdict(html, results);
  add_speeds(html, results);
  add_best_cells(html, results);
  add_hit_rates(html, results);
  add_amplifications(html, results);
  add_shuffle_quality(html, results);
  add_ladder(html, results);
  add_run_metadata(html, results);
  add_numbers(html, results);
  html.close();
  html.leaf("footer", "Nothing on this page is fetched from elsewhere.");
  html.raw("</body></html>\n");
  const std::string& page = html.str();
  cli::write_atomic_file(path, {reinterpret_cast<const unsigned char*>(page.data()), page.size()},
                         force);
  return page.size();
}

}  // namespace bench
