/// Labels, attributes and small fields of a dataset as a CSV table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <chunkio/dataset.hpp>

namespace h5pack {

/// One line a sample: `path`, then `label` (the class name, or the number) or a column for each
/// attribute, then the fields; a field of several values a sample has a column for each. Numbers
/// are written so that they are read back exactly.
class SampleTable {
 public:
  /// Reads labels and fields whole; fields of more than 64 values a sample are left out. Blocks on
  /// I/O.
  /// \throws chunkio::Error as Dataset::read_field().
  explicit SampleTable(const chunkio::Dataset& dataset);

  /// The line of column names.
  [[nodiscard]] const std::string& header() const noexcept { return header_; }
  /// Appends the line of a row.
  void append(std::string& table, std::int64_t row, const std::string& path) const;
  /// Names of the fields that have no columns.
  [[nodiscard]] const std::vector<std::string>& left_out() const noexcept { return left_out_; }

 private:
  struct Column {
    chunkio::FieldInfo field = {};
    std::vector<std::byte> values = {};  // Of all rows.
  };

  void add(const chunkio::Dataset& dataset, const chunkio::FieldInfo& field,
           const std::vector<std::string>& names);

  std::string header_ = "path";
  std::vector<Column> columns_;
  std::vector<std::string> class_names_;  // For the first column; empty: numbers.
  std::vector<std::string> left_out_;
};

}  // namespace h5pack
