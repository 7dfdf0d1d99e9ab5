#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include <chunkio/statistics.hpp>

namespace chunkio {
namespace {

// Labels of third-party files can be anything, row ids for instance; those are no classes.
constexpr std::int64_t kMaxClassesCounted = 100'000;

}  // namespace

bool are_classes(const FieldInfo& labels) noexcept {
  return labels.dtype == DType::int64 && labels.row_shape.rank() == 0;
}

std::vector<std::int64_t> read_classes(const Dataset& dataset, RowRange rows) {
  const std::optional<FieldInfo>& labels = dataset.info().labels;
  if (!labels || !are_classes(*labels)) return {};
  std::vector<std::int64_t> classes(static_cast<std::size_t>(rows.end - rows.begin));
  dataset.read_field(labels->name, rows.begin, rows.end - rows.begin,
                     std::as_writable_bytes(std::span(classes)));
  return classes;
}

void for_each_label_block(const Dataset& dataset,
                          const std::function<void(const LabelBlock&)>& visit) {
  constexpr std::int64_t kRows = 65'536;
  const DatasetInfo& info = dataset.info();
  if (!info.labels) return;
  const FieldInfo& labels = *info.labels;
  const bool classes = are_classes(labels);
  const bool attributes = labels.dtype == DType::uint8 && labels.row_shape.rank() == 1;
  if (!classes && !attributes) return;

  const std::size_t row_bytes = Dataset::row_bytes(labels);
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

std::vector<std::int64_t> count_labels(const Dataset& dataset) {
  LabelHistogram counts;
  for_each_label_block(dataset, [&](const LabelBlock& block) { counts.add(block); });
  return counts.result();
}

void LabelCounter::add(std::int64_t label) {
  if (total_ > 0 && label != last_) ++changes_;
  last_ = label;
  ++total_;
  // Once there are too many, no further one matters.
  if (counts_.size() <= kMaxClasses) ++counts_[label];
}

std::optional<LabelSummary> LabelCounter::summary() const {
  if (total_ == 0 || counts_.size() > kMaxClasses) return std::nullopt;
  LabelSummary summary;
  const auto total = static_cast<double>(total_);
  double different = 1;  // probability that two samples have different labels
  for (const auto& [label, count] : counts_) {
    summary.class_counts.push_back(count);
    const double share = static_cast<double>(count) / total;
    different -= share * share;
  }
  // Shuffled files have all of the changes one expects, sorted ones as good as none. A tenth also
  // finds files that are sorted in pieces, such as several sorted files one after the other.
  constexpr double kFew = 0.1;
  summary.sorted_by_class =
      counts_.size() > 1 && static_cast<double>(changes_) < kFew * (total - 1) * different;
  return summary;
}

}  // namespace chunkio
