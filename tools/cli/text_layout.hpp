/// How the text of reports is laid out: labels on the left, paragraphs that fit a terminal.
///
/// Pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <string>

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

/// "12.5 %" of 0.125.
[[nodiscard]] std::string percent(double fraction, int digits);

/// `text` with blanks on the left up to `columns`.
[[nodiscard]] std::string right_aligned(const std::string& text, std::size_t columns);

}  // namespace cli
