#include "h5pack/dataset/export_names.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <set>

#include <chunkio/statistics.hpp>

#include "h5pack/sources/source_provenance.hpp"

namespace h5pack {
namespace {

constexpr std::size_t kMinDigits = 6;

std::string padded(std::int64_t number, std::size_t digits) {
  std::string text = std::to_string(number);
  return text.size() < digits ? std::string(digits - text.size(), '0') + text : text;
}

std::size_t digits_of(std::int64_t number) { return std::to_string(number).size(); }

bool is_folder_name(const std::string& name) {
  return !name.empty() && name.size() <= 255 && name != "." && name != ".." &&
         name != kSampleTable && name.find('/') == std::string::npos;
}

/// Whether each can be a folder of its own.
bool are_folder_names(const std::vector<std::string>& names) {
  return std::all_of(names.begin(), names.end(), is_folder_name) &&
         std::set<std::string>(names.begin(), names.end()).size() == names.size();
}

}  // namespace

ExportNames::ExportNames(const chunkio::Dataset& dataset) {
  const chunkio::DatasetInfo& info = dataset.info();
  extensions_.assign(static_cast<std::size_t>(info.num_samples), ".png");
  numbers_ = source_rows(dataset, {0, info.num_samples});
  std::vector<std::int64_t> sorted = numbers_;
  std::sort(sorted.begin(), sorted.end());
  const bool usable = !sorted.empty() && sorted.front() >= 0 &&
                      std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
  if (!usable) {
    numbers_.resize(static_cast<std::size_t>(info.num_samples));
    std::iota(numbers_.begin(), numbers_.end(), std::int64_t{0});
  }
  digits_ = std::max(kMinDigits, digits_of(usable ? sorted.back() : info.num_samples - 1));

  const std::vector<std::int64_t> counts = count_labels(dataset);
  if (!info.labels || info.labels->dtype != chunkio::DType::int64) return;
  if (counts.empty()) {
    notes_.emplace_back("the labels are not class numbers, so they are only in " +
                        std::string(kSampleTable));
    return;
  }
  choose_folders(info, counts);
  labels_.reserve(numbers_.size());
  for_each_label_block(dataset, [&](const chunkio::LabelBlock& block) {
    labels_.insert(labels_.end(), block.classes.begin(), block.classes.end());
  });
}

void ExportNames::choose_folders(const chunkio::DatasetInfo& info,
                                 std::span<const std::int64_t> counts) {
  const bool named = info.class_names.size() >= counts.size() && are_folder_names(info.class_names);
  if (named) {
    folders_ = info.class_names;
  } else {
    const std::size_t digits = digits_of(static_cast<std::int64_t>(counts.size()) - 1);
    for (std::size_t label = 0; label < counts.size(); ++label) {
      folders_.push_back(padded(static_cast<std::int64_t>(label), digits));
    }
    if (!info.class_names.empty()) {
      notes_.emplace_back(
          "some class names cannot be folders, so numbers are used; the names are in " +
          std::string(kSampleTable));
    }
  }
  for (std::size_t label = 0; label < counts.size(); ++label) {
    if (counts[label] > 0) used_.push_back(folders_[label]);
  }
  if (used_.size() < folders_.size() || !std::is_sorted(folders_.begin(), folders_.end())) {
    notes_.emplace_back(
        "h5pack folder numbers classes by their folders, in sorted order; some labels would "
        "change, "
        "since " +
        std::string(used_.size() < folders_.size() ? "a class has no images"
                                                   : "the class names are not sorted"));
  }
}

std::string ExportNames::path(std::int64_t row) const {
  const auto i = static_cast<std::size_t>(row);
  const std::string name = padded(numbers_[i], digits_) + extensions_[i];
  return labels_.empty() ? name : folders_[static_cast<std::size_t>(labels_[i])] + "/" + name;
}

std::vector<std::int64_t> ExportNames::rows_by_number() const {
  std::vector<std::int64_t> rows(numbers_.size());
  std::iota(rows.begin(), rows.end(), std::int64_t{0});
  std::sort(rows.begin(), rows.end(), [&](std::int64_t a, std::int64_t b) {
    return numbers_[static_cast<std::size_t>(a)] < numbers_[static_cast<std::size_t>(b)];
  });
  return rows;
}

}  // namespace h5pack
