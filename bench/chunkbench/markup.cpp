#include "chunkbench/markup.hpp"

#include <array>
#include <cassert>
#include <cstddef>

#include "cli/escape.hpp"

namespace bench {

std::string escape_html(std::string_view text) {
  constexpr std::string_view kSpecial = "&<>\"";
  constexpr std::array<const char*, kSpecial.size()> kNames = {"&amp;", "&lt;", "&gt;", "&quot;"};
  std::string out;
  while (true) {
    const std::size_t end = text.find('\n');
    for (const char c : cli::escape(text.substr(0, end))) {
      const std::size_t at = kSpecial.find(c);
      out += at == std::string_view::npos ? std::string(1, c) : kNames[at];
    }
    if (end == std::string_view::npos) return out;
    out += '\n';
    text.remove_prefix(end + 1);
  }
}

Markup& Markup::open(const char* tag, Attributes attributes) {
  text_.append("<").append(tag);
  for (const auto& [name, value] : attributes) {
    text_.append(" ").append(name).append("=\"").append(escape_html(value)).append("\"");
  }
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
  text_.append("</").append(open_.back()).append(">");
  open_.pop_back();
  return *this;
}

Markup& Markup::leaf(const char* tag, Attributes attributes, std::string_view text) {
  return open(tag, attributes).text(text).close();
}

Markup& Markup::text(std::string_view text) {
  text_ += escape_html(text);
  return *this;
}

Markup& Markup::raw(std::string_view markup) {
  text_ += markup;
  return *this;
}

}  // namespace bench
