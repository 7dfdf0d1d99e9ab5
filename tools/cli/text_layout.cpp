#include "cli/text_layout.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

#include "cli/output.hpp"

namespace cli {

std::string labelled(const std::string& label, const std::string& text, bool colour) {
  const std::size_t used = std::min(label.size(), kLabelColumns - 1);
  std::string out = bold(label, colour) + std::string(kLabelColumns - used, ' ');
  for (const char c : text) {
    out += c;
    if (c == '\n') out += std::string(kLabelColumns, ' ');
  }
  return out + "\n";
}

std::string wrap(const std::string& text, std::size_t columns) {
  std::string out;
  std::size_t used = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::size_t length = end - at;
    if (used != 0 && used + 1 + length > columns) {
      out += '\n';
      used = 0;
    } else if (used != 0) {
      out += ' ';
      ++used;
    }
    out += text.substr(at, length);
    used += length;
    at = end + 1;
  }
  return out;
}

std::string decimals(double value, int digits) {
  std::array<char, 64> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%.*f", digits, value);
  return buffer.data();
}

std::string percent(double fraction, int digits) { return decimals(100 * fraction, digits) + " %"; }

std::string right_aligned(const std::string& text, std::size_t columns) {
  return text.size() < columns ? std::string(columns - text.size(), ' ') + text : text;
}

}  // namespace cli
