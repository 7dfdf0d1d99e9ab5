/// Reads the labels of a dataset in blocks of bounded size.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <chunkio/dataset.hpp>
#include <chunkio/epoch_order.hpp>

namespace h5pack {

/// Whether these labels are one class number a sample, not a table of attributes.
[[nodiscard]] bool are_classes(const chunkio::FieldInfo& labels) noexcept;

/// The labels of consecutive rows: one of `classes` and `attributes` is filled.
struct LabelBlock {
  std::int64_t first_row = 0;
  std::span<const std::int64_t> classes = {};     ///< One a row.
  std::span<const std::uint8_t> attributes = {};  ///< [rows, num_attributes].
  std::size_t num_attributes = 0;
};

/// The class of each of the rows; empty if the file has no labels that are classes. Blocks on I/O.
/// \throws chunkio::Error hdf5_failed.
[[nodiscard]] std::vector<std::int64_t> read_classes(const chunkio::Dataset& dataset,
                                                     chunkio::RowRange rows);

/// Calls `visit` for all rows in order; not at all if the file has no labels. Blocks on I/O.
/// \throws chunkio::Error hdf5_failed.
void for_each_label_block(const chunkio::Dataset& dataset,
                          const std::function<void(const LabelBlock&)>& visit);

/// How often each class occurs, or each attribute is set.
class LabelHistogram {
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

/// LabelHistogram of all labels of the file. Blocks on I/O. \throws chunkio::Error hdf5_failed.
[[nodiscard]] std::vector<std::int64_t> count_labels(const chunkio::Dataset& dataset);

}  // namespace h5pack
