#include "harness/figure.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <sstream>

#include "harness/spread.hpp"

namespace bench {
namespace {

using Json = nlohmann::ordered_json;

/// Two decimals, three where they tell 1.000 from 1.004, none for large numbers.
std::string number(double value) {
  std::array<char, 64> text{};
  const double size = std::abs(value);
  const int decimals = size >= 100 ? 0 : (std::abs(size - 1) < 0.0095 ? 3 : 2);
  std::snprintf(text.data(), text.size(), "%.*f", decimals, value);
  return text.data();
}

/// `text` in lines as wide as Markdown pages of this repository are; those after the first begin
/// with `indent`.
std::string wrapped(const std::string& text, const std::string& indent) {
  constexpr std::size_t kColumns = 116;
  std::string lines;
  std::size_t column = 0;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    // A line that begins with a sign alone would be an item of a list.
    if (column + 1 + word.size() > kColumns && word.size() > 1) {
      lines += "\n" + indent;
      column = indent.size();
    } else if (!lines.empty()) {
      lines += ' ';
      ++column;
    }
    lines += word;
    column += word.size();
  }
  return lines;
}

const char* verdict(const Figure& figure) {
  if (figure.failed) return "FAILED";
  if (figure.values.empty()) return "not measured";
  const std::optional<bool> met = figure.met();
  if (!met) return "";
  return *met ? "met" : "SHORT";
}

}  // namespace

std::string Target::text() const {
  std::array<char, 64> text_{};
  std::snprintf(text_.data(), text_.size(), "%s %g%s", kind == Kind::at_least ? ">=" : "<=", value,
                unit);
  return text_.data();
}

std::optional<bool> Figure::met() const {
  if (!target || values.empty()) return std::nullopt;
  return target->met_by(spread_of(values).median);
}

std::string Figure::text() const {
  if (values.empty()) return "-";
  const Spread spread = spread_of(values);
  const std::string unit = target ? target->unit : "";
  if (values.size() == 1) return number(spread.median) + unit;
  return number(spread.median) + " (" + number(spread.lowest) + " to " + number(spread.highest) +
         ")" + unit;
}

void Report::add(Figure figure) {
  std::printf("  %-58s %-28s %-9s %s%s%s\n", figure.row.c_str(), figure.text().c_str(),
              figure.target ? figure.target->text().c_str() : "", verdict(figure),
              figure.note.empty() ? "" : "  ", figure.note.c_str());
  std::fflush(stdout);
  figures_.push_back(std::move(figure));
}

void Report::add_detail(const std::string& size, const std::string& experiment, Json detail) {
  details_[size][experiment] = std::move(detail);
}

void Report::add_line(std::string line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
  lines_.push_back(std::move(line));
}

bool Report::anything_failed() const noexcept {
  return std::any_of(figures_.begin(), figures_.end(),
                     [](const Figure& figure) { return figure.failed; });
}

std::string Report::markdown() const {
  std::vector<std::string> rows;
  std::vector<std::string> sizes;
  for (const Figure& figure : figures_) {
    if (std::find(rows.begin(), rows.end(), figure.row) == rows.end()) rows.push_back(figure.row);
    if (std::find(sizes.begin(), sizes.end(), figure.size) == sizes.end()) {
      sizes.push_back(figure.size);
    }
  }
  std::string text;
  for (const std::string& line : lines_) text += wrapped("- " + line, "  ") + "\n";
  text += "\n| |";
  for (const std::string& size : sizes) text += " " + size + " | target | |";
  text += "\n|---|";
  for (std::size_t i = 0; i < sizes.size(); ++i) text += "---|---|---|";
  text += "\n";
  std::vector<std::string> notes;
  for (const std::string& row : rows) {
    text += "| " + row + " |";
    for (const std::string& size : sizes) {
      const auto figure = std::find_if(figures_.begin(), figures_.end(), [&](const Figure& f) {
        return f.row == row && f.size == size;
      });
      if (figure == figures_.end()) {
        text += " | | |";
        continue;
      }
      std::string mark;
      if (!figure->note.empty()) {
        auto note = std::find(notes.begin(), notes.end(), figure->note);
        if (note == notes.end()) note = notes.insert(notes.end(), figure->note);
        mark = " [" + std::to_string(note - notes.begin() + 1) + "]";
      }
      text += " " + figure->text() + " | " + (figure->target ? figure->target->text() : "") +
              " | " + verdict(*figure) + mark + " |";
    }
    text += "\n";
  }
  if (!notes.empty()) text += "\n";
  for (std::size_t i = 0; i < notes.size(); ++i) {
    text += wrapped("[" + std::to_string(i + 1) + "] " + notes[i], "") + "  \n";
  }
  return text;
}

Json Report::json() const {
  Json figures = Json::array();
  for (const Figure& figure : figures_) {
    Json entry = {{"row", figure.row}, {"size", figure.size}};
    if (figure.target) {
      entry["target"] = {{figure.target->kind == Target::Kind::at_least ? "at_least" : "at_most",
                          figure.target->value}};
      if (*figure.target->unit != '\0') entry["unit"] = figure.target->unit + 1;
    }
    if (!figure.values.empty()) {
      entry["values"] = figure.values;
      entry.update(to_json(spread_of(figure.values)));
    }
    if (const std::optional<bool> met = figure.met()) entry["met"] = *met;
    if (!figure.note.empty()) entry["note"] = figure.note;
    if (figure.failed) entry["failed"] = true;
    figures.push_back(std::move(entry));
  }
  return {{"lines", lines_}, {"figures", figures}, {"details", details_}};
}

}  // namespace bench
