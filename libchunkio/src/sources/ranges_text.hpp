/// Rows as messages name them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <chunkio/epoch_order.hpp>

namespace chunkio::sources {

[[nodiscard]] inline bool is_one_row(std::span<const RowRange> rows) noexcept {
  return rows.size() == 1 && rows.front().end - rows.front().begin == 1;
}

/// "row 3", "rows 3, 7 to 9 and 12 more". \param noun  of one: "row".
[[nodiscard]] inline std::string ranges_text(const std::string& noun,
                                             std::span<const RowRange> rows) {
  constexpr std::size_t kNamed = 8;
  std::string text;
  std::int64_t more = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto [begin, end] = rows[i];
    if (i >= kNamed) {
      more += end - begin;
      continue;
    }
    text += (i == 0 ? "" : ", ") + std::to_string(begin);
    if (end - begin > 1) text += " to " + std::to_string(end - 1);
  }
  if (more > 0) text += " and " + std::to_string(more) + " more";
  return noun + (is_one_row(rows) ? " " : "s ") + text;
}

}  // namespace chunkio::sources
