#include "chunkbench/markup.hpp"

#include <array>
#include <cassert>
#include <cmath>
#include <cstdio>

#include "cli/escape.hpp"

namespace bench {

std::string escape_html(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (true) {
    const std::size_t end = text.find('\n');
    for (const char c : cli::escape(text.substr(0, end))) {
      switch (c) {
        case '&':
          out += "&amp;";
          break;
        case '<':
          out += "&lt;";
          break;
        case '>':
          out += "&gt;";
          break;
        case '"':
          out += "&quot;";
          break;
        default:
          out += c;
      }
    }
    if (end == std::string_view::npos) return out;
    out += '\n';
    text.remove_prefix(end + 1);
  }
}

std::string coordinate(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f", std::round(value * 100) / 100 + 0.0);
  std::string digits = text.data();
  digits.erase(digits.find_last_not_of('0') + 1);
  if (digits.ends_with('.')) digits.pop_back();
  return digits;
}

void Markup::begin(const char* tag, Attributes attributes) {
  text_ += '<';
  text_ += tag;
  for (const auto& [name, value] : attributes) {
    text_ += ' ';
    text_ += name;
    text_ += "=\"" + escape_html(value) + '"';
  }
}

Markup& Markup::open(const char* tag, Attributes attributes) {
  begin(tag, attributes);
  text_ += '>';
  open_.push_back(tag);
  return *this;
}

Markup& Markup::begin_section(const std::string& id, std::string_view title,
                              std::string_view note) {
  return open("section", {{"id", id}}).leaf("h2", title).leaf("p", {{"class", "note"}}, note);
}

Markup& Markup::close() {
  assert(!open_.empty());
  text_ += "</";
  text_ += open_.back();
  text_ += '>';
  open_.pop_back();
  return *this;
}

Markup& Markup::leaf(const char* tag, Attributes attributes, std::string_view text) {
  return open(tag, attributes).text(text).close();
}

Markup& Markup::empty(const char* tag, Attributes attributes) {
  begin(tag, attributes);
  text_ += "/>";
  return *this;
}

Markup& Markup::text(std::string_view text) {
  text_ += escape_html(text);
  return *this;
}

Markup& Markup::add(const Markup& other) {
  assert(other.open_.empty());
  text_ += other.text_;
  return *this;
}

Markup& Markup::raw(std::string_view markup) {
  text_ += markup;
  return *this;
}

}  // namespace bench
