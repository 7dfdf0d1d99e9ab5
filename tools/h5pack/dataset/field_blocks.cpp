#include "h5pack/dataset/field_blocks.hpp"

#include <algorithm>
#include <vector>

namespace h5pack {

void for_each_field_block(
    const chunkio::Dataset& dataset, const chunkio::FieldInfo& field, chunkio::RowRange rows,
    const std::function<void(std::int64_t, std::span<const std::byte>)>& visit) {
  constexpr std::int64_t kBlockBytes = std::int64_t{4} << 20;
  const auto row_bytes = static_cast<std::int64_t>(chunkio::Dataset::row_bytes(field));
  const std::int64_t block = std::max<std::int64_t>(kBlockBytes / row_bytes, 1);
  std::vector<std::byte> values(
      static_cast<std::size_t>(std::min(block, rows.end - rows.begin) * row_bytes));
  for (std::int64_t first = rows.begin; first < rows.end; first += block) {
    const std::int64_t count = std::min(block, rows.end - first);
    const auto part = std::span(values).first(static_cast<std::size_t>(count * row_bytes));
    dataset.read_field(field.name, first, count, part);
    visit(first, part);
  }
}

}  // namespace h5pack
