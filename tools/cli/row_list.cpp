#include "cli/row_list.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <chunkio/error.hpp>

#include "cli/parse_number.hpp"
#include "cli/quote.hpp"

namespace cli {
namespace {

/// A row, or the end of a range. Below the largest number, so that one more is a number, too.
std::optional<std::int64_t> parse_row(std::string_view text) {
  const auto row = parse_number<std::int64_t>(text);
  return row && *row >= 0 && *row < std::numeric_limits<std::int64_t>::max() ? row : std::nullopt;
}

std::optional<chunkio::RowRange> parse_part(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::optional<std::int64_t> first = parse_row(text.substr(0, colon));
  if (!first) return std::nullopt;
  if (colon == std::string_view::npos) return chunkio::RowRange{*first, *first + 1};
  const std::optional<std::int64_t> end = parse_row(text.substr(colon + 1));
  if (!end || *end <= *first) return std::nullopt;
  return chunkio::RowRange{*first, *end};
}

}  // namespace

chunkio::RowSelection parse_row_list(std::string_view text) {
  std::vector<chunkio::RowRange> ranges;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string_view part = text.substr(at, end - at);
    const std::optional<chunkio::RowRange> range = parse_part(part);
    if (!range) {
      throw chunkio::Error(chunkio::ErrorCode::invalid_argument,
                           quote(part) +
                               " is neither a row nor a range FIRST:END with FIRST "
                               "below END; write rows as 0:1000,2000");
    }
    ranges.push_back(*range);
    at = end + 1;
  }
  return chunkio::RowSelection(std::move(ranges));
}

}  // namespace cli
