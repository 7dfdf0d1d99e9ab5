#include "h5pack/sources/celeba_table.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

#include <chunkio/error.hpp>

#include "cli/file_bytes.hpp"
#include "cli/quote.hpp"
#include "h5pack/sources/csv_reader.hpp"
#include "h5pack/sources/listing.hpp"

namespace h5pack {

namespace {

using chunkio::Error;
using chunkio::ErrorCode;

std::string place_of(const std::string& path, std::int64_t line) {
  return cli::quote(path) + " line " + std::to_string(line);
}

std::optional<std::int32_t> parse_integer(const std::string& text) {
  std::int32_t value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || status != std::errc{} || end != text.data() + text.size())
    return std::nullopt;
  return value;
}

/// Words of one line, split at blanks.
std::vector<std::string> split_words(std::string_view line) {
  constexpr std::string_view kBlanks = " \t\r";
  std::vector<std::string> words;
  while (true) {
    const std::size_t start = line.find_first_not_of(kBlanks);
    if (start == std::string_view::npos) return words;
    line.remove_prefix(start);
    const std::size_t end = std::min(line.find_first_of(kBlanks), line.size());
    words.emplace_back(line.substr(0, end));
    line.remove_prefix(end);
  }
}

}  // namespace

CelebaTable CelebaTable::read(const std::string& path, TxtHeader header, std::size_t columns) {
  cli::FileBytes file;
  file.read(path);
  const auto bytes = file.bytes();
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  CelebaTable table(path);
  if (path.ends_with(".csv")) {
    table.read_csv(text, columns);
  } else {
    table.read_txt(text, header, columns);
  }
  return table;
}

void CelebaTable::read_csv(std::string_view text, std::size_t columns) {
  CsvReader reader(text, path_);
  std::vector<std::string> fields;
  if (!reader.next(fields) || fields.size() < 2) {
    throw Error(ErrorCode::corrupt_data,
                cli::quote(path_) + " has no header with a name column and values");
  }
  columns_.assign(fields.begin() + 1, fields.end());
  num_columns_ = columns_.size();
  if (columns != 0 && num_columns_ != columns) {
    throw Error(ErrorCode::corrupt_data, reader.place() + " names " + std::to_string(num_columns_) +
                                             " values instead of " + std::to_string(columns));
  }
  while (reader.next(fields)) add_row(fields, reader.line());
}

void CelebaTable::read_txt(std::string_view text, TxtHeader header, std::size_t columns) {
  num_columns_ = columns;
  std::optional<std::int32_t> count;
  std::int64_t line_number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::vector<std::string> words = split_words(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++line_number;
    if (header == TxtHeader::count_and_names && line_number == 1) {
      if (words.size() == 1) count = parse_integer(words[0]);
      if (!count) {
        throw Error(ErrorCode::corrupt_data,
                    place_of(path_, line_number) + " should hold the number of rows");
      }
    } else if (header == TxtHeader::count_and_names && line_number == 2) {
      columns_ = words;
      if (words.empty() || (columns != 0 && words.size() != columns)) {
        throw Error(ErrorCode::corrupt_data,
                    place_of(path_, line_number) + " names " + std::to_string(words.size()) +
                        " values" + (columns == 0 ? "" : " instead of " + std::to_string(columns)));
      }
      num_columns_ = columns_.size();
    } else if (!words.empty()) {
      add_row(words, line_number);
    }
  }
  if (count && static_cast<std::size_t>(std::max(*count, 0)) != num_rows()) {
    throw Error(ErrorCode::corrupt_data,
                place_of(path_, 1) + " announces " + std::to_string(*count) +
                    " rows, but there are " + std::to_string(num_rows()) +
                    "; the file is cut short or edited, download it again");
  }
}

void CelebaTable::add_row(const std::vector<std::string>& fields, std::int64_t line) {
  if (fields.size() != num_columns_ + 1) {
    throw Error(ErrorCode::corrupt_data, place_of(path_, line) + " holds " +
                                             std::to_string(fields.size() - 1) +
                                             " values instead of " + std::to_string(num_columns_));
  }
  const auto [existing, inserted] = rows_.try_emplace(fields[0], num_rows());
  if (!inserted) {
    throw Error(ErrorCode::corrupt_data, place_of(path_, line) + " repeats " +
                                             cli::quote(fields[0]) + " of line " +
                                             std::to_string(lines_[existing->second]));
  }
  for (std::size_t i = 1; i < fields.size(); ++i) {
    const auto value = parse_integer(fields[i]);
    if (!value) {
      throw Error(ErrorCode::corrupt_data,
                  place_of(path_, line) + ": " + cli::quote(fields[i]) + " is not a whole number");
    }
    values_.push_back(*value);
  }
  lines_.push_back(line);
}

std::string CelebaTable::place(std::size_t row) const { return place_of(path_, lines_[row]); }

std::vector<std::size_t> CelebaTable::rows_of(const std::vector<std::string>& file_names) const {
  std::vector<std::size_t> rows;
  std::vector<std::string> without_row;
  std::vector<bool> used(num_rows(), false);
  for (const std::string& name : file_names) {
    const auto it = rows_.find(name);
    if (it == rows_.end()) {
      without_row.push_back(name);
      continue;
    }
    rows.push_back(it->second);
    used[it->second] = true;
  }
  if (!without_row.empty()) {
    throw Error(ErrorCode::not_found, cli::quote(path_) + " has no row for image " +
                                          first_few(without_row) +
                                          "; download the table again, or remove the images");
  }
  if (num_rows() != file_names.size()) {
    std::vector<std::string> without_image;
    for (const auto& [name, row] : rows_) {
      if (!used[row]) without_image.push_back(name);
    }
    std::sort(without_image.begin(), without_image.end());
    throw Error(ErrorCode::not_found,
                cli::quote(path_) + " has rows without an image: " + first_few(without_image) +
                    "; unpack the images again, or remove the rows");
  }
  return rows;
}

}  // namespace h5pack
