#include <algorithm>
#include <array>
#include <iterator>

#include "h5pack/sources/celeba_source.hpp"
#include "h5pack/sources/cifar_source.hpp"
#include "h5pack/sources/csv_source.hpp"
#include "h5pack/sources/folder_source.hpp"
#include "h5pack/sources/source_kind.hpp"

namespace h5pack {

std::span<const SourceKind* const> source_kinds() noexcept {
  // A kind that others look like comes before them: source_kind_at() asks the last one first.
  static constexpr std::array kKinds = {&kFolderSource, &kCifarSource, &kCelebaSource, &kCsvSource};
  return kKinds;
}

const SourceKind* find_source_kind(std::string_view name) noexcept {
  const auto kinds = source_kinds();
  const auto found = std::find_if(kinds.begin(), kinds.end(),
                                  [&](const SourceKind* kind) { return kind->name == name; });
  return found == kinds.end() ? nullptr : *found;
}

const SourceKind* source_kind_at(const std::string& path) {
  const auto kinds = source_kinds();
  const auto found = std::find_if(kinds.rbegin(), kinds.rend(),
                                  [&](const SourceKind* kind) { return kind->is_at(path); });
  return found == kinds.rend() ? nullptr : *found;
}

std::vector<std::string> SourceKind::flags() const {
  std::vector<std::string> flags;
  std::transform(options.begin(), options.end(), std::back_inserter(flags),
                 [](const SourceOption& option) { return option.flag; });
  return flags;
}

std::string recorded_text(const nlohmann::json& recorded, const char* name) {
  const auto found = recorded.find(name);
  return found != recorded.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace h5pack
