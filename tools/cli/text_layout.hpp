/// How the text of reports is laid out: labels on the left, paragraphs that fit a terminal.
///
/// Pure functions; thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace cli {

/// Columns of the label of an entry.
inline constexpr std::size_t kLabelColumns = 14;

/// "label         text\n", the label in bold if `colour`; further lines of `text` are indented
/// alike.
[[nodiscard]] std::string labelled(const std::string& label, const std::string& text, bool colour);

/// Text broken at blanks into lines of at most `columns`, longer words excepted.
[[nodiscard]] std::string wrap(const std::string& text, std::size_t columns);

/// With so many digits after the point.
[[nodiscard]] std::string decimals(double value, int digits);

/// 16 hexadecimal digits, of a digest. In JSON, too: its numbers are doubles to many readers.
[[nodiscard]] std::string hex(std::uint64_t value);

/// "12.5 %" of 0.125.
[[nodiscard]] std::string percent(double fraction, int digits);

/// `text` with blanks on the left up to `columns`.
[[nodiscard]] std::string right_aligned(const std::string& text, std::size_t columns);

/// `text` with each `from` as `to`.
[[nodiscard]] std::string replaced(std::string text, const std::string& from,
                                   const std::string& to);

/// The values with `between` between them, each as `text` writes it.
template <class Values, class Text = std::identity>
[[nodiscard]] std::string joined(const Values& values, const std::string& between,
                                 const Text& text = {}) {
  std::string out;
  for (std::size_t i = 0; const auto& value : values) {
    if (i++ != 0) out += between;
    out += std::invoke(text, value);
  }
  return out;
}

/// "a, b and 7 more": the first `most` of the values, each as `text` writes it.
template <class T, class Text>
[[nodiscard]] std::string listed(const std::vector<T>& values, std::size_t most, const Text& text) {
  std::string out;
  for (std::size_t i = 0; i < std::min(values.size(), most); ++i) {
    out += (i == 0 ? "" : ", ") + text(values[i]);
  }
  if (values.size() > most) out += " and " + std::to_string(values.size() - most) + " more";
  return out;
}

}  // namespace cli
