#include "h5pack/sparse/ratings_source.hpp"

#include <algorithm>
#include <exception>
#include <utility>
#include <vector>

#include <chunkio/error.hpp>

#include "cli/quote.hpp"
#include "cli/text_layout.hpp"
#include "h5pack/sources/csv_reader.hpp"
#include "h5pack/sparse/name_table.hpp"
#include "h5pack/sparse/parallel_parse.hpp"

namespace h5pack {

namespace {

using chunkio::DType;
using chunkio::Error;
using chunkio::ErrorCode;

/// One line, its names in the text of the block.
struct Line {
  std::uint32_t row_end = 0;     // In the text; the row's name begins where the line before ends.
  std::uint32_t column_end = 0;  // The column's name begins where the row's ends.
  std::uint64_t row_hash = 0;
  std::uint64_t column_hash = 0;
  std::uint64_t bits = 0;
};

struct ParsedLines {
  std::string text = {};
  std::vector<Line> lines = {};
  std::exception_ptr failure = {};  ///< Behind those lines.
};

class RatingsSource final : public MatrixSource {
 public:
  RatingsSource(const MatrixRequest& request, std::unique_ptr<ByteStream> stream)
      : request_(request),
        dtype_(request.dtype.value_or(DType::float32)),
        stream_(std::move(stream)),
        blocks_(*stream_, true),
        first_(blocks_.next()) {
    read_header();
  }

  [[nodiscard]] DType dtype() const override { return dtype_; }
  [[nodiscard]] Duplicates duplicates() const override { return Duplicates::last; }
  [[nodiscard]] nlohmann::ordered_json description() const override {
    return {{"kind", "csv"},
            {"path", request_.input},
            {"row_from", header_[row_field_]},
            {"column_from", header_[column_field_]},
            {"value_from", value_field_ ? header_[*value_field_] : "none"}};
  }
  [[nodiscard]] std::int64_t num_units() const override { return stream_->size(); }
  [[nodiscard]] const char* unit() const override { return "bytes"; }
  [[nodiscard]] std::int64_t num_rows() const override { return first_names_.size(); }
  [[nodiscard]] std::int64_t num_columns() const override { return second_names_.size(); }
  [[nodiscard]] NameOf row_names() const override {
    return [this](std::int64_t row) { return first_names_.name(row); };
  }
  [[nodiscard]] NameOf column_names() const override {
    return [this](std::int64_t column) { return second_names_.name(column); };
  }
  [[nodiscard]] std::int64_t names_bytes() const override {
    return first_names_.bytes() + second_names_.bytes();
  }

  void read(const EntrySink& sink, const std::function<void(std::int64_t)>& advance) override;

 private:
  void read_header();
  [[nodiscard]] std::size_t find(const std::string& wanted, std::size_t fallback,
                                 const std::string& option) const;
  [[nodiscard]] ParsedLines parse(const LineBlock& block) const;
  void add_line(CsvReader& reader, const std::vector<std::string>& fields,
                ParsedLines& parsed) const;
  [[nodiscard]] std::uint64_t value_of(const CsvReader& reader, const std::string& text) const;
  void check_memory() const;

  MatrixRequest request_;
  DType dtype_;
  std::unique_ptr<ByteStream> stream_;
  LineBlocks blocks_;
  std::optional<LineBlock> first_;
  std::vector<std::string> header_;
  std::size_t row_field_ = 0;
  std::size_t column_field_ = 0;
  std::optional<std::size_t> value_field_;
  NameTable first_names_;   // Of what --row-from names.
  NameTable second_names_;  // Of what --column-from names.
};

void RatingsSource::read_header() {
  const std::string& name = stream_->name();
  if (!first_) throw Error(ErrorCode::corrupt_data, name + " is empty");
  CsvReader reader(first_->text, stream_->name());
  if (!reader.next(header_)) {
    throw Error(ErrorCode::corrupt_data, name + " has no header: the first line names the columns");
  }
  if (header_.size() < 2) {
    throw Error(ErrorCode::corrupt_data,
                name + " has one column, " + cli::quote(header_.front()) +
                    "; a CSV file with a row and a column on each line is needed");
  }
  row_field_ = find(request_.row_from, 0, "--row-from");
  column_field_ = find(request_.column_from, 1, "--column-from");
  if (request_.value_from != "none" && (!request_.value_from.empty() || header_.size() > 2)) {
    value_field_ = find(request_.value_from, 2, "--value-from");
  }
  if (row_field_ == column_field_ || value_field_ == row_field_ || value_field_ == column_field_) {
    throw Error(ErrorCode::invalid_argument,
                name +
                    ": one column would be used twice; set --row-from, --column-from and "
                    "--value-from to different ones of " +
                    cli::joined(header_, ", ", cli::quote));
  }
}

std::size_t RatingsSource::find(const std::string& wanted, std::size_t fallback,
                                const std::string& option) const {
  if (wanted.empty()) return fallback;
  const auto it = std::find(header_.begin(), header_.end(), wanted);
  if (it != header_.end()) return static_cast<std::size_t>(it - header_.begin());
  throw Error(ErrorCode::invalid_argument,
              stream_->name() + " has no column " + cli::quote(wanted) + " (" + option +
                  "); its columns are " + cli::joined(header_, ", ", cli::quote));
}

std::uint64_t RatingsSource::value_of(const CsvReader& reader, const std::string& text) const {
  const NumberText value = encode_text(text, false, dtype_);
  if (!value.is_number) {
    throw Error(ErrorCode::corrupt_data, reader.place() + ": " + cli::quote(text) +
                                             " is no number; --value-from names the column of "
                                             "values, or none");
  }
  if (value.bits) return *value.bits;
  throw Error(ErrorCode::corrupt_data,
              reader.place() + ": " + misfit(text, dtype_) + ", or another --value-from");
}

void RatingsSource::add_line(CsvReader& reader, const std::vector<std::string>& fields,
                             ParsedLines& parsed) const {
  if (fields.size() != header_.size()) {
    throw Error(ErrorCode::corrupt_data, reader.place() + " has " + std::to_string(fields.size()) +
                                             " fields, the header has " +
                                             std::to_string(header_.size()));
  }
  const std::string& row = fields[row_field_];
  const std::string& column = fields[column_field_];
  if (row.empty() || column.empty()) {
    throw Error(ErrorCode::corrupt_data,
                reader.place() + " has an empty " +
                    cli::quote(header_[row.empty() ? row_field_ : column_field_]));
  }
  Line line{.row_hash = NameTable::hash(row), .column_hash = NameTable::hash(column)};
  line.bits = value_field_ ? value_of(reader, fields[*value_field_]) : *encode_integer(1, dtype_);
  parsed.text += row;
  line.row_end = static_cast<std::uint32_t>(parsed.text.size());
  parsed.text += column;
  line.column_end = static_cast<std::uint32_t>(parsed.text.size());
  parsed.lines.push_back(line);
}

ParsedLines RatingsSource::parse(const LineBlock& block) const {
  ParsedLines parsed;
  parsed.text.reserve(block.text.size());
  try {
    CsvReader reader(block.text, request_.input == "-" ? "standard input" : request_.input,
                     block.first_line);
    std::vector<std::string> fields;
    if (block.first_line == 1) reader.next(fields);  // The header.
    while (reader.next(fields)) add_line(reader, fields, parsed);
  } catch (...) {
    parsed.failure = std::current_exception();
  }
  return parsed;
}

void RatingsSource::check_memory() const {
  // Half is for the entries.
  if (names_bytes() <= request_.memory_budget / 2) return;
  throw Error(ErrorCode::out_of_resources,
              stream_->name() + ": " + std::to_string(first_names_.size()) + " names of rows and " +
                  std::to_string(second_names_.size()) +
                  " of columns do not fit half of --memory-budget; raise it",
              "memory_budget");
}

void RatingsSource::read(const EntrySink& sink, const std::function<void(std::int64_t)>& advance) {
  std::vector<Entry> entries;
  std::int64_t shown = 0;
  const auto take = [&](ParsedLines&& parsed) {
    entries.clear();
    std::uint32_t begin = 0;
    std::string_view last_row;
    std::uint32_t row_number = 0;
    for (const Line& line : parsed.lines) {
      const std::string_view text = parsed.text;
      const std::string_view row = text.substr(begin, line.row_end - begin);
      // Files are mostly sorted by row.
      if (row != last_row) row_number = first_names_.number_of(row, line.row_hash);
      last_row = row;
      const std::uint32_t column_number = second_names_.number_of(
          text.substr(line.row_end, line.column_end - line.row_end), line.column_hash);
      begin = line.column_end;
      entries.push_back({row_number, column_number, line.bits});
    }
    check_memory();
    sink(entries);
    if (parsed.failure) std::rethrow_exception(parsed.failure);
    const std::int64_t now = std::min(stream_->size(), stream_->position());
    advance(now - shown);
    shown = now;
  };
  take(parse(*first_));
  first_.reset();
  parse_blocks<ParsedLines>(
      blocks_, request_.memory_budget, [this](const LineBlock& block) { return parse(block); },
      take);
  if (first_names_.size() == 0) {
    throw Error(ErrorCode::corrupt_data, stream_->name() + " has no entries: it has only a header");
  }
}

}  // namespace

std::unique_ptr<MatrixSource> open_ratings(const MatrixRequest& request,
                                           std::unique_ptr<ByteStream> stream) {
  return std::make_unique<RatingsSource>(request, std::move(stream));
}

}  // namespace h5pack
