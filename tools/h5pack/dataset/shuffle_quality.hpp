/// How well batches are mixed, compared with a global shuffle of the same samples.
///
/// Two measures. The label entropy of a batch, in bits, is what its labels say about each other: 0
/// if all are the same. The same-chunk pair rate is the probability that two samples of one batch
/// were stored in the same row group; it needs no labels, and sees that neighbours stay together
/// where their labels do not show it.
///
/// Both are compared with what a global shuffle is expected to give, which is computed exactly.
/// A batch of B out of N samples is a draw without replacement, so the number of its samples with a
/// label that n of N samples have is hypergeometric, and
///
///     E[H] = sum over labels, sum over k: P(k; N, n, B) * -(k/B) log2(k/B)
///
/// which costs O(B) for each distinct n, of which there are at most sqrt(2 N). The probability that
/// two samples come from the same of groups of n_g samples is the sum of n_g (n_g - 1) / (N (N -
/// 1)). Simulating it would add noise that depends on the seed, for nothing.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include <chunkio/dataset.hpp>
#include <chunkio/epoch_order.hpp>
#include <chunkio/statistics.hpp>

namespace h5pack {

/// Bits; 0 for no labels.
[[nodiscard]] double label_entropy(std::span<const std::int64_t> labels);

/// Expected label entropy of `batch_size` samples drawn without replacement, in bits.
/// \param class_counts  samples with each label, each >= 0. \pre 0 <= batch_size <= their sum.
[[nodiscard]] double expected_label_entropy(std::span<const std::int64_t> class_counts,
                                            std::int64_t batch_size);

/// Probability that two different samples are of the same row group; 0 if there is only one sample.
[[nodiscard]] double expected_pair_rate(const chunkio::RowGroups& groups);

/// The labels of the samples of `groups`; absent without labels that are one number a sample and
/// stand for classes. Blocks on I/O. \throws chunkio::Error hdf5_failed.
[[nodiscard]] std::optional<chunkio::LabelSummary> summarize_labels(
    const chunkio::Dataset& dataset, const chunkio::RowGroups& groups);

/// What came out for one epoch.
struct ShuffleQuality {
  std::optional<double> label_entropy = {};         ///< Mean over batches, bits. Absent: no labels.
  std::optional<double> global_label_entropy = {};  ///< Expected of a global shuffle.
  std::optional<double> pair_rate = {};             ///< Absent: no batch has two samples.
  double global_pair_rate = 0;
  bool sorted_by_class = false;

  /// 1 is as good as a global shuffle. Absent where that has no entropy either, or no labels.
  [[nodiscard]] std::optional<double> entropy_ratio() const;
};

/// Adds up the batches of one epoch. `labels` and `groups` must outlive it.
class ShuffleMeter {
 public:
  ShuffleMeter(const std::optional<chunkio::LabelSummary>& labels,
               const chunkio::RowGroups& groups);

  /// \param rows    of the samples of a batch. \param labels  theirs; ignored if the summary is
  ///                absent.
  void add(std::span<const std::int64_t> rows, std::span<const std::int64_t> labels);
  [[nodiscard]] ShuffleQuality quality() const;

 private:
  const std::optional<chunkio::LabelSummary>& labels_;
  const chunkio::RowGroups& groups_;
  std::map<std::int64_t, double> expected_entropy_;  // by batch size
  double entropy_sum_ = 0;
  double expected_sum_ = 0;
  std::int64_t batches_ = 0;
  double same_chunk_pairs_ = 0;
  double pairs_ = 0;
  std::vector<std::int64_t> scratch_;
};

}  // namespace h5pack
