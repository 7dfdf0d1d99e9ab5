#include "cli/text_layout.hpp"

#include <array>
#include <cstdio>

namespace cli {

std::string labelled(const std::string& label, const std::string& text, bool colour) {
  const std::size_t used = std::min(label.size(), kLabelColumns - 1);
  return (colour ? "\x1b[1m" + label + "\x1b[0m" : label) + std::string(kLabelColumns - used, ' ') +
         replaced(text, "\n", "\n" + std::string(kLabelColumns, ' ')) + "\n";
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

std::string hex(std::uint64_t value) {
  std::array<char, 17> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%016llx", static_cast<unsigned long long>(value));
  return buffer.data();
}

std::string percent(double fraction, int digits) { return decimals(100 * fraction, digits) + " %"; }

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

std::string right_aligned(const std::string& text, std::size_t columns) {
  return text.size() < columns ? std::string(columns - text.size(), ' ') + text : text;
}

}  // namespace cli
