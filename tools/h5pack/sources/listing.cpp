#include "h5pack/sources/listing.hpp"

#include <algorithm>

#include "cli/quote.hpp"

namespace h5pack {

const chunkio::FieldData* find_field(std::span<const chunkio::FieldData> fields,
                                     std::string_view name) {
  const auto it = std::find_if(fields.begin(), fields.end(),
                               [&](const auto& field) { return field.info.name == name; });
  return it == fields.end() ? nullptr : &*it;
}

std::string first_few(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kShown); ++i) {
    text += (i == 0 ? "" : ", ") + cli::quote(names[i]);
  }
  if (names.size() > kShown) text += " and " + std::to_string(names.size() - kShown) + " more";
  return text;
}

}  // namespace h5pack
