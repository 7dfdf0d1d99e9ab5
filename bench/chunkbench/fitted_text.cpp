#include "fitted_text.hpp"

#include <algorithm>

namespace bench {
namespace {

bool continues_character(char byte) { return (static_cast<unsigned char>(byte) & 0xc0U) == 0x80U; }

}  // namespace

std::size_t characters(std::string_view text) {
  return text.size() -
         static_cast<std::size_t>(std::count_if(text.begin(), text.end(), continues_character));
}

std::string fitted(std::string_view text, std::size_t columns) {
  if (characters(text) <= columns) return std::string(text);
  std::size_t end = 0;
  for (std::size_t seen = 0; end < text.size(); ++end) {
    if (!continues_character(text[end]) && ++seen == columns) break;
  }
  return std::string(text.substr(0, end)) + "…";
}

std::vector<std::string> fitted_lines(std::string_view text, std::size_t columns,
                                      std::size_t max_lines) {
  std::vector<std::string> lines;
  while (characters(text) > columns && lines.size() + 1 < max_lines) {
    // The last blank that leaves the line short enough.
    std::size_t end = std::string_view::npos;
    std::size_t seen = 0;
    for (std::size_t i = 0; i < text.size() && seen <= columns; ++i) {
      if (!continues_character(text[i])) ++seen;
      if (text[i] == ' ' && seen <= columns + 1 && i > 0) end = i;
    }
    if (end == std::string_view::npos) break;
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  lines.push_back(fitted(text, columns));
  return lines;
}

}  // namespace bench
