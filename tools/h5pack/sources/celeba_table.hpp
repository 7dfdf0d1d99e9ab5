/// Annotation tables of CelebA: integers by file name, as txt or csv.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace h5pack {

/// How the first lines of a txt table look. A csv table always has one header line.
enum class TxtHeader : std::uint8_t {
  none,             ///< Rows from the first line on.
  count_and_names,  ///< A line with the number of rows, then a line with the names of the values.
};

/// A table of integers. The first value of a row is a file name and not counted as a column.
class CelebaTable {
 public:
  /// Reads `path`, a csv table if its name ends so. Line ends may be LF or CRLF.
  /// \param columns  expected number of values a row; 0: as many as the header names.
  /// \throws Error not_found, io_failed; corrupt_data, naming the line: a wrong count of rows or
  ///         values, something that is no 32-bit integer, a file name for the second time.
  static CelebaTable read(const std::string& path, TxtHeader header, std::size_t columns);

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] const std::vector<std::string>& columns() const noexcept { return columns_; }
  [[nodiscard]] std::size_t num_columns() const noexcept { return num_columns_; }
  [[nodiscard]] std::size_t num_rows() const noexcept { return lines_.size(); }

  [[nodiscard]] std::int32_t value(std::size_t row, std::size_t column) const {
    return values_[row * num_columns_ + column];
  }
  /// "'PATH' line 17", for messages about the contents of a row.
  [[nodiscard]] std::string place(std::size_t row) const;

  /// The row of each file name, in the order given.
  /// \throws Error not_found if a name has no row or a row no name; the first few are named.
  [[nodiscard]] std::vector<std::size_t> rows_of(const std::vector<std::string>& file_names) const;

 private:
  explicit CelebaTable(std::string path) : path_(std::move(path)) {}
  void read_txt(std::string_view text, TxtHeader header, std::size_t columns);
  void read_csv(std::string_view text, std::size_t columns);
  void add_row(const std::vector<std::string>& fields, std::int64_t line);

  std::string path_;
  std::vector<std::string> columns_;
  std::size_t num_columns_ = 0;
  std::vector<std::int32_t> values_;                   // Row-major.
  std::vector<std::int64_t> lines_;                    // Of each row.
  std::unordered_map<std::string, std::size_t> rows_;  // By file name.
};

}  // namespace h5pack
