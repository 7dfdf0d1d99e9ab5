/// The labels of a dataset: read in blocks of bounded size, and counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include <chunkio/dataset.hpp>
#include <chunkio/epoch_order.hpp>
#include <chunkio/export.hpp>

namespace chunkio {

/// Whether these labels are one class number a sample, not a table of attributes.
[[nodiscard]] CHUNKIO_EXPORT bool are_classes(const FieldInfo& labels) noexcept;

/// The labels of consecutive rows: one of `classes` and `attributes` is filled.
struct LabelBlock {
  std::int64_t first_row = 0;
  std::span<const std::int64_t> classes = {};     ///< One a row.
  std::span<const std::uint8_t> attributes = {};  ///< [rows, num_attributes].
  std::size_t num_attributes = 0;
};

/// The class of each of the rows; empty if the file has no labels that are classes. Blocks on I/O.
/// \throws Error hdf5_failed.
[[nodiscard]] CHUNKIO_EXPORT std::vector<std::int64_t> read_classes(const Dataset& dataset,
                                                                    RowRange rows);

/// Calls `visit` for all rows in order; not at all if the file has no labels. Blocks on I/O.
/// \throws Error hdf5_failed.
CHUNKIO_EXPORT void for_each_label_block(const Dataset& dataset,
                                         const std::function<void(const LabelBlock&)>& visit);

/// How often each class occurs, or each attribute is set.
class CHUNKIO_EXPORT LabelHistogram {
 public:
  /// Nothing more is counted once a class was found that cannot be.
  void add(const LabelBlock& block);
  /// Samples of each class, or with each attribute set; empty if labels are neither, or go beyond
  /// what can be counted.
  [[nodiscard]] std::vector<std::int64_t> result() const;

 private:
  std::vector<std::int64_t> counts_;
  bool countable_ = true;
};

/// LabelHistogram of all labels of the file. Blocks on I/O. \throws Error hdf5_failed.
[[nodiscard]] CHUNKIO_EXPORT std::vector<std::int64_t> count_labels(const Dataset& dataset);

/// Which labels there are, and whether they are mixed.
struct LabelSummary {
  std::vector<std::int64_t> class_counts = {};  ///< Of each label that occurs.
  /// Neighbours in the file have the same label far more often than by chance.
  bool sorted_by_class = false;
};

/// Collects a LabelSummary from labels in the order of the file.
class CHUNKIO_EXPORT LabelCounter {
 public:
  /// More distinct labels than this are row numbers or the like, no classes.
  static constexpr std::size_t kMaxClasses = 100'000;

  void add(std::int64_t label);
  /// Absent if there were no labels, or more than kMaxClasses different ones.
  [[nodiscard]] std::optional<LabelSummary> summary() const;

 private:
  std::map<std::int64_t, std::int64_t> counts_;
  std::int64_t total_ = 0;
  std::int64_t changes_ = 0;  // neighbours with different labels
  std::int64_t last_ = 0;
};

}  // namespace chunkio
