#include "h5pack/dataset/sample_table.hpp"

#include <array>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "cli/parse_number.hpp"

namespace h5pack {
namespace {

constexpr std::int64_t kMaxColumns = 64;

template <class T>
void append_as(std::string& text, const std::byte* bytes) {
  T value{};
  std::memcpy(&value, bytes, sizeof value);
  std::array<char, 64> digits{};
  const auto [end, status] = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  static_cast<void>(status);  // no number is longer
  text.append(digits.data(), end);
}

/// "box_0", "box_1", ...; "id" for one value a sample.
std::vector<std::string> column_names(const chunkio::FieldInfo& field) {
  if (field.row_shape.rank() == 0) return {field.name};
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < field.row_shape.num_elements(); ++i) {
    names.push_back(field.name + "_" + std::to_string(i));
  }
  return names;
}

/// Returns the text that a number stands for; it is empty for others, such as -1.
std::string_view text_of(const std::vector<std::string>& texts, chunkio::DType dtype,
                         const std::byte* bytes) {
  std::string digits;
  append_number(digits, dtype, bytes);
  const auto number = cli::parse_number<std::size_t>(digits);
  return number && *number < texts.size() ? std::string_view(texts[*number]) : "";
}

}  // namespace

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

void append_number(std::string& text, chunkio::DType dtype, const std::byte* bytes) {
  switch (dtype) {
    case chunkio::DType::uint8:
      return append_as<std::uint8_t>(text, bytes);
    case chunkio::DType::int8:
      return append_as<std::int8_t>(text, bytes);
    case chunkio::DType::uint16:
      return append_as<std::uint16_t>(text, bytes);
    case chunkio::DType::int16:
      return append_as<std::int16_t>(text, bytes);
    case chunkio::DType::uint32:
      return append_as<std::uint32_t>(text, bytes);
    case chunkio::DType::int32:
      return append_as<std::int32_t>(text, bytes);
    case chunkio::DType::uint64:
      return append_as<std::uint64_t>(text, bytes);
    case chunkio::DType::int64:
      return append_as<std::int64_t>(text, bytes);
    case chunkio::DType::float32:
      return append_as<float>(text, bytes);
    case chunkio::DType::float64:
      return append_as<double>(text, bytes);
    case chunkio::DType::float16:
    case chunkio::DType::bfloat16:
      break;  // No file has them.
  }
}

SampleTable::SampleTable(const chunkio::Dataset& dataset, const std::string& first_column)
    : header_(csv_field(first_column)) {
  const chunkio::DatasetInfo& info = dataset.info();
  if (const std::optional<chunkio::FieldInfo>& labels = info.labels) {
    const bool table = labels->row_shape.rank() > 0;
    std::vector<std::string> names =
        table ? column_names({.name = "attribute", .row_shape = labels->row_shape})
              : std::vector<std::string>{"label"};
    if (table && info.attribute_names.size() == names.size()) names = info.attribute_names;
    add(dataset, *labels, names);
    if (!table && !info.class_names.empty()) columns_.back().texts = info.class_names;
  }
  for (const chunkio::FieldInfo& field : info.fields) {
    if (field.row_shape.num_elements() > kMaxColumns) {
      left_out_.push_back(field.name);
    } else {
      add(dataset, field, column_names(field));
    }
  }
  header_ += '\n';
}

void SampleTable::add(const chunkio::Dataset& dataset, const chunkio::FieldInfo& field,
                      const std::vector<std::string>& names) {
  for (const std::string& name : names) header_ += "," + csv_field(name);
  Column column{field, std::vector<std::byte>(static_cast<std::size_t>(dataset.size()) *
                                              chunkio::Dataset::row_bytes(field))};
  dataset.read_field(field.name, 0, dataset.size(), column.values);
  column.texts = dataset.categories(field.name).value_or(std::vector<std::string>());
  columns_.push_back(std::move(column));
}

void SampleTable::append(std::string& table, std::int64_t row, std::string_view path) const {
  table += csv_field(path);
  for (const Column& column : columns_) {
    const std::size_t size = size_of(column.field.dtype);
    const std::size_t row_bytes = chunkio::Dataset::row_bytes(column.field);
    const std::byte* const values =
        column.values.data() + static_cast<std::size_t>(row) * row_bytes;
    if (!column.texts.empty()) {
      table += "," + csv_field(text_of(column.texts, column.field.dtype, values));
      continue;
    }
    for (std::size_t at = 0; at < row_bytes; at += size) {
      table += ',';
      append_number(table, column.field.dtype, values + at);
    }
  }
  table += '\n';
}

}  // namespace h5pack
