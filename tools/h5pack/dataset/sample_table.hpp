/// Labels, attributes and small fields of a dataset as a CSV table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <chunkio/dataset.hpp>

namespace h5pack {

/// One line a sample: `path`, then `label` (the class name, or the number) or a column for each
/// attribute, then the fields; a field of several values a sample has a column for each. Numbers
/// that stand for texts are written as these, others so that they are read back exactly.
class SampleTable {
 public:
  /// Reads labels and fields whole; fields of more than 64 values a sample are left out. Blocks on
  /// I/O.
  /// \throws chunkio::Error as Dataset::read_field().
  /// \param first_column  its name, in place of `path`.
  explicit SampleTable(const chunkio::Dataset& dataset, const std::string& first_column = "path");

  /// The line of column names.
  [[nodiscard]] const std::string& header() const noexcept { return header_; }
  /// Appends the line of a row.
  void append(std::string& table, std::int64_t row, std::string_view path) const;
  /// Names of the fields that have no columns.
  [[nodiscard]] const std::vector<std::string>& left_out() const noexcept { return left_out_; }

 private:
  struct Column {
    chunkio::FieldInfo field = {};
    std::vector<std::byte> values = {};   // Of all rows.
    std::vector<std::string> texts = {};  // That its numbers stand for; empty: none.
  };

  void add(const chunkio::Dataset& dataset, const chunkio::FieldInfo& field,
           const std::vector<std::string>& names);

  std::string header_;
  std::vector<Column> columns_;
  std::vector<std::string> left_out_;
};

/// A CSV field (RFC 4180): quoted where it has to be.
[[nodiscard]] std::string csv_field(std::string_view text);

/// Appends a number as it is read back exactly. \param bytes  size_of(dtype), native byte order.
void append_number(std::string& text, chunkio::DType dtype, const std::byte* bytes);

}  // namespace h5pack
