/// Texts of unknown length, in places that have an end.
///
/// Pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace bench {

/// Characters of UTF-8 text; what is no UTF-8 counts by bytes.
[[nodiscard]] std::size_t characters(std::string_view text);

/// At most `columns` characters; what is longer ends with an ellipsis.
[[nodiscard]] std::string fitted(std::string_view text, std::size_t columns);

/// Broken at blanks into at most `max_lines` lines of at most `columns` characters; what is longer
/// ends with an ellipsis. At least one line.
[[nodiscard]] std::vector<std::string> fitted_lines(std::string_view text, std::size_t columns,
                                                    std::size_t max_lines);

}  // namespace bench
