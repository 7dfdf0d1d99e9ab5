#include "h5pack/sources/listing.hpp"

#include <algorithm>

#include "cli/quote.hpp"
#include "cli/text_layout.hpp"

namespace h5pack {

const chunkio::FieldData* find_field(std::span<const chunkio::FieldData> fields,
                                     std::string_view name) {
  const auto it = std::find_if(fields.begin(), fields.end(),
                               [&](const auto& field) { return field.info.name == name; });
  return it == fields.end() ? nullptr : &*it;
}

std::string first_few(const std::vector<std::string>& names) {
  return cli::listed(names, 3, cli::quote);
}

}  // namespace h5pack
