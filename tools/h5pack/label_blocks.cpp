#include "label_blocks.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

namespace h5pack {
namespace {

// Labels of foreign files can be anything, row ids for instance; those are no classes.
constexpr std::int64_t kMaxClassesCounted = 100'000;

}  // namespace

bool are_classes(const chunkio::FieldInfo& labels) noexcept {
  return labels.dtype == chunkio::DType::int64 && labels.row_shape.rank() == 0;
}

std::vector<std::int64_t> read_classes(const chunkio::Dataset& dataset, chunkio::RowRange rows) {
  const std::optional<chunkio::FieldInfo>& labels = dataset.info().labels;
  if (!labels || !are_classes(*labels)) return {};
  std::vector<std::int64_t> classes(static_cast<std::size_t>(rows.end - rows.begin));
  dataset.read_field(labels->name, rows.begin, rows.end - rows.begin,
                     std::as_writable_bytes(std::span(classes)));
  return classes;
}

void for_each_label_block(const chunkio::Dataset& dataset,
                          const std::function<void(const LabelBlock&)>& visit) {
  constexpr std::int64_t kRows = 65'536;
  const chunkio::DatasetInfo& info = dataset.info();
  if (!info.labels) return;
  const chunkio::FieldInfo& labels = *info.labels;
  const bool classes = are_classes(labels);
  const bool attributes = labels.dtype == chunkio::DType::uint8 && labels.row_shape.rank() == 1;
  if (!classes && !attributes) return;

  const std::size_t row_bytes = chunkio::Dataset::row_bytes(labels);
  std::vector<std::int64_t> class_values;
  std::vector<std::uint8_t> attribute_values(
      attributes ? static_cast<std::size_t>(kRows) * row_bytes : 0);
  for (std::int64_t first = 0; first < info.num_samples; first += kRows) {
    const std::int64_t count = std::min(kRows, info.num_samples - first);
    LabelBlock block{.first_row = first};
    if (classes) {
      class_values = read_classes(dataset, {first, first + count});
      block.classes = class_values;
    } else {
      const auto values =
          std::span(attribute_values).first(static_cast<std::size_t>(count) * row_bytes);
      dataset.read_field(labels.name, first, count, std::as_writable_bytes(values));
      block.attributes = values;
      block.num_attributes = row_bytes;
    }
    visit(block);
  }
}

void LabelHistogram::add(const LabelBlock& block) {
  if (block.num_attributes != 0) {
    counts_.resize(block.num_attributes);
    for (std::size_t i = 0; i < block.attributes.size(); ++i) {
      counts_[i % block.num_attributes] += block.attributes[i] != 0 ? 1 : 0;
    }
  }
  for (const std::int64_t label : block.classes) {
    countable_ = countable_ && label >= 0 && label < kMaxClassesCounted;
    if (!countable_) return;
    if (static_cast<std::size_t>(label) >= counts_.size()) {
      counts_.resize(static_cast<std::size_t>(label) + 1);
    }
    ++counts_[static_cast<std::size_t>(label)];
  }
}

std::vector<std::int64_t> LabelHistogram::result() const {
  return countable_ ? counts_ : std::vector<std::int64_t>();
}

std::vector<std::int64_t> count_labels(const chunkio::Dataset& dataset) {
  LabelHistogram counts;
  for_each_label_block(dataset, [&](const LabelBlock& block) { counts.add(block); });
  return counts.result();
}

}  // namespace h5pack
