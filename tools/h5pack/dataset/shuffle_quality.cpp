#include "h5pack/dataset/shuffle_quality.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace h5pack {
namespace {

/// -p log2 p.
double entropy_term(double p) { return p > 0 ? -p * std::log2(p) : 0; }

double number_of_pairs(std::int64_t samples) {
  const auto n = static_cast<double>(samples);
  return n * (n - 1) / 2;
}

/// Calls `visit` with the length of each run of equal values.
template <class Visit>
void for_each_run(std::span<const std::int64_t> sorted, const Visit& visit) {
  for (std::size_t begin = 0; begin < sorted.size();) {
    std::size_t end = begin + 1;
    while (end < sorted.size() && sorted[end] == sorted[begin]) ++end;
    visit(static_cast<std::int64_t>(end - begin));
    begin = end;
  }
}

double entropy_of_sorted(std::span<const std::int64_t> sorted) {
  double entropy = 0;
  for_each_run(sorted, [&](std::int64_t length) {
    entropy += entropy_term(static_cast<double>(length) / static_cast<double>(sorted.size()));
  });
  return entropy;
}

/// E[-(k/B) log2(k/B)] for the number k of samples with a label that `count` of `total` samples
/// have, in a draw of `batch_size`. Probabilities are taken relative to that of the most probable k
/// and summed outwards from it, so that neither underflow nor large factorials matter.
double expected_entropy_term(double total, double count, double batch_size) {
  const double smallest = std::max(0.0, batch_size - (total - count));
  const double largest = std::min(batch_size, count);
  const double mode =
      std::clamp(std::floor((batch_size + 1) * (count + 1) / (total + 2)), smallest, largest);
  // P(k + 1) / P(k).
  const auto ratio = [&](double k) {
    return (count - k) * (batch_size - k) / ((k + 1) * (total - count - batch_size + k + 1));
  };
  constexpr double kNegligible = 1e-18;
  double weight_sum = 0;
  double sum = 0;
  const auto add = [&](double k, double weight) {
    weight_sum += weight;
    sum += weight * entropy_term(k / batch_size);
  };
  double weight = 1;
  for (double k = mode; weight > kNegligible; ++k) {
    add(k, weight);
    if (k >= largest) break;
    weight *= ratio(k);
  }
  weight = 1;
  for (double k = mode; k > smallest && weight > kNegligible; --k) {
    weight /= ratio(k - 1);
    add(k - 1, weight);
  }
  return sum / weight_sum;
}

}  // namespace

double label_entropy(std::span<const std::int64_t> labels) {
  std::vector<std::int64_t> sorted(labels.begin(), labels.end());
  std::sort(sorted.begin(), sorted.end());
  return entropy_of_sorted(sorted);
}

double expected_label_entropy(std::span<const std::int64_t> class_counts, std::int64_t batch_size) {
  if (batch_size == 0) return 0;
  double total = 0;
  std::map<std::int64_t, std::int64_t> classes_with;  // so many samples
  for (const std::int64_t count : class_counts) {
    total += static_cast<double>(count);
    if (count > 0) ++classes_with[count];
  }
  double entropy = 0;
  for (const auto& [count, classes] : classes_with) {
    entropy +=
        static_cast<double>(classes) *
        expected_entropy_term(total, static_cast<double>(count), static_cast<double>(batch_size));
  }
  return entropy;
}

double expected_pair_rate(const chunkio::RowGroups& groups) {
  double same = 0;
  for (std::int64_t group = 0; group < groups.num_groups(); ++group) {
    same += number_of_pairs(groups.length(group));
  }
  const double all = number_of_pairs(groups.num_samples());
  return all > 0 ? same / all : 0;
}

std::optional<chunkio::LabelSummary> summarize_labels(const chunkio::Dataset& dataset,
                                                      const chunkio::RowGroups& groups) {
  chunkio::LabelCounter counter;
  // Blocks come in the order of the file, and so do the samples of the groups.
  std::int64_t group = 0;
  std::int64_t sample = 0;
  for_each_label_block(dataset, [&](const chunkio::LabelBlock& block) {
    if (block.classes.empty()) return;  // a table of attributes
    const auto end = block.first_row + static_cast<std::int64_t>(block.classes.size());
    for (; group < groups.num_groups(); ++group, sample = 0) {
      for (; sample < groups.length(group); ++sample) {
        const std::int64_t row = groups.row(group, sample);
        if (row >= end) return;
        counter.add(block.classes[static_cast<std::size_t>(row - block.first_row)]);
      }
    }
  });
  return counter.summary();
}

std::optional<double> ShuffleQuality::entropy_ratio() const {
  // Rounding leaves a trace of entropy where there is none.
  constexpr double kNone = 1e-9;
  if (!label_entropy || !global_label_entropy || *global_label_entropy < kNone) return std::nullopt;
  return *label_entropy / *global_label_entropy;
}

ShuffleMeter::ShuffleMeter(const std::optional<chunkio::LabelSummary>& labels,
                           const chunkio::RowGroups& groups)
    : labels_(labels), groups_(groups) {}

void ShuffleMeter::add(std::span<const std::int64_t> rows, std::span<const std::int64_t> labels) {
  if (rows.empty()) return;
  const auto size = static_cast<std::int64_t>(rows.size());
  ++batches_;
  pairs_ += number_of_pairs(size);
  scratch_.assign(rows.begin(), rows.end());
  for (std::int64_t& row : scratch_) row = groups_.number_of(row);
  std::sort(scratch_.begin(), scratch_.end());
  for_each_run(scratch_,
               [&](std::int64_t length) { same_chunk_pairs_ += number_of_pairs(length); });
  if (!labels_) return;

  scratch_.assign(labels.begin(), labels.end());
  std::sort(scratch_.begin(), scratch_.end());
  entropy_sum_ += entropy_of_sorted(scratch_);
  const auto known = expected_entropy_.find(size);
  expected_sum_ += known != expected_entropy_.end()
                       ? known->second
                       : expected_entropy_[size] = expected_label_entropy(
                             labels_->class_counts, std::min(size, groups_.num_samples()));
}

ShuffleQuality ShuffleMeter::quality() const {
  ShuffleQuality quality;
  if (pairs_ > 0) quality.pair_rate = same_chunk_pairs_ / pairs_;
  quality.global_pair_rate = expected_pair_rate(groups_);
  if (labels_ && batches_ > 0) {
    quality.label_entropy = entropy_sum_ / static_cast<double>(batches_);
    quality.global_label_entropy = expected_sum_ / static_cast<double>(batches_);
    quality.sorted_by_class = labels_->sorted_by_class;
  }
  return quality;
}

}  // namespace h5pack
