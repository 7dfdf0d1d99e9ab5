/// Parses lists of rows such as "0:1000,2000,5000:6000".
#pragma once

#include <string_view>

#include <chunkio/epoch_order.hpp>

namespace cli {

/// The rows of a list, separated by commas: single rows, and ranges FIRST:END without END. Order
/// does not matter; blanks are not allowed. Pure; thread-safe.
/// \throws chunkio::Error invalid_argument, naming the part that is wrong, or the row that is named
///         twice.
[[nodiscard]] chunkio::RowSelection parse_row_list(std::string_view text);

}  // namespace cli
