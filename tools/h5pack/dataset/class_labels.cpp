#include "h5pack/dataset/class_labels.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string_view>
#include <utility>

#include <chunkio/error.hpp>

#include "cli/parse_number.hpp"
#include "cli/quote.hpp"
#include "cli/text_layout.hpp"

namespace h5pack {
namespace {

constexpr std::size_t kNamesShown = 5;
// Of names beyond this only the beginning is compared, so that a file cannot make this slow.
constexpr std::size_t kLettersCompared = 64;

/// Letters to insert, remove or replace to come from `a` to `b`; upper and lower case are the same.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; };
  a = a.substr(0, kLettersCompared);
  b = b.substr(0, kLettersCompared);
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (lower(a[i]) == lower(b[j]) ? 0 : 1);
      diagonal = std::exchange(row[j + 1], std::min({replaced, row[j] + 1, row[j + 1] + 1}));
    }
  }
  return row.back();
}

/// What the person may have meant, as the end of a sentence.
std::string suggestion(const std::vector<std::string>& class_names, const std::string& name) {
  if (class_names.empty()) return "the file has no class names: use numbers";
  std::vector<std::pair<std::size_t, std::string>> close;
  for (const std::string& other : class_names) {
    const std::size_t distance = edit_distance(name, other);
    // A third of the letters may differ: "cot" is close to "cat", and "dog" is not.
    if (distance <= std::max<std::size_t>(name.size() / 3, 1)) close.emplace_back(distance, other);
  }
  if (close.empty()) return "the file has " + cli::listed(class_names, kNamesShown, cli::escape);
  std::stable_sort(close.begin(), close.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> names;
  names.reserve(close.size());
  for (auto& [distance, other] : close) names.push_back(std::move(other));
  return "did you mean " + cli::listed(names, kNamesShown, cli::escape) + "?";
}

}  // namespace

std::optional<std::string> class_name(std::span<const std::string> names, std::int64_t label) {
  if (label < 0 || !std::cmp_less(label, names.size())) return std::nullopt;
  return names[static_cast<std::size_t>(label)];
}

std::vector<std::int64_t> labels_of(const chunkio::DatasetInfo& info,
                                    const std::vector<std::string>& names) {
  std::vector<std::int64_t> labels;
  for (const std::string& name : names) {
    const auto found = std::find(info.class_names.begin(), info.class_names.end(), name);
    const std::optional<std::int64_t> label = found != info.class_names.end()
                                                  ? found - info.class_names.begin()
                                                  : cli::parse_number<std::int64_t>(name);
    if (!label) {
      throw chunkio::Error(chunkio::ErrorCode::invalid_argument,
                           "--labels: " + cli::escape(info.path) + " has no class " +
                               cli::quote(name) + "; " + suggestion(info.class_names, name));
    }
    labels.push_back(*label);
  }
  return labels;
}

}  // namespace h5pack
