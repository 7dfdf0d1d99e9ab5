#include "h5pack/pack/pack_order.hpp"

#include <cstddef>
#include <cstring>
#include <utility>

#include "h5pack/pack/row_order.hpp"

namespace h5pack {

namespace {

/// The field with its rows in pack order.
chunkio::FieldData reordered(const chunkio::FieldData& field,
                             const std::vector<std::int64_t>& order) {
  const std::size_t row = chunkio::Dataset::row_bytes(field.info);
  chunkio::FieldData result{field.info, std::vector<std::byte>(order.size() * row)};
  for (std::size_t i = 0; i < order.size(); ++i) {
    std::memcpy(result.values.data() + i * row,
                field.values.data() + static_cast<std::size_t>(order[i]) * row, row);
  }
  return result;
}

}  // namespace

std::vector<std::int64_t> pack_order(const PackPlan& plan, const PackOptions& options) {
  const std::vector<std::int64_t> all = options.shuffled
                                            ? shuffled_order(plan.total_samples, options.seed)
                                            : source_order(plan.total_samples);
  const auto first = all.begin() + plan.first_place;
  return {first, first + plan.num_samples};
}

std::vector<chunkio::FieldData> fields_of(const Split& split,
                                          const std::vector<std::int64_t>& order) {
  std::vector<chunkio::FieldData> fields;
  for (const chunkio::FieldData& field : split.fields) fields.push_back(reordered(field, order));
  std::vector<std::int64_t> sources = order;
  for (std::int64_t& row : sources) row = split.images->source_index(row);
  fields.push_back(make_field(kSourceIndex, sources));
  return fields;
}

std::vector<std::int64_t> without(const std::vector<std::int64_t>& order,
                                  const std::vector<SkippedImage>& skipped) {
  std::vector<std::int64_t> kept;
  kept.reserve(order.size() - skipped.size());
  auto next = skipped.begin();
  for (std::size_t place = 0; place < order.size(); ++place) {
    if (next != skipped.end() && std::cmp_equal(next->place, place)) {
      ++next;
    } else {
      kept.push_back(order[place]);
    }
  }
  return kept;
}

}  // namespace h5pack
