/// Comma-separated values by RFC 4180: quoted fields, doubled quotes, line ends inside quotes,
/// LF or CRLF.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace h5pack {

/// Walks over the records of a text. A UTF-8 byte order mark and blank lines are skipped.
class CsvReader {
 public:
  /// Keeps a view of `text`. \param path  for messages.
  /// \param first_line  the number of its first line, in a part of a file.
  CsvReader(std::string_view text, std::string path, std::int64_t first_line = 1);

  /// Reads the next record, reusing the memory of `fields`. False at the end.
  /// \throws Error corrupt_data, with the line: text after a closing quote, a quote inside an
  ///         unquoted field, or a quote that is never closed.
  bool next(std::vector<std::string>& fields);

  /// Line on which the record read last starts, from 1.
  [[nodiscard]] std::int64_t line() const noexcept { return record_line_; }
  /// "'PATH' line 17", for messages.
  [[nodiscard]] std::string place() const;

 private:
  void read_quoted(std::string& field);
  void read_plain(std::string& field);
  /// Skips one line end, if there is one here.
  bool skip_line_end();

  std::string_view text_;
  std::string path_;
  std::size_t position_ = 0;
  std::int64_t line_ = 1;
  std::int64_t record_line_ = 0;
};

}  // namespace h5pack
