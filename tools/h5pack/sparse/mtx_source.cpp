#include "h5pack/sparse/mtx_source.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <exception>
#include <utility>
#include <vector>

#include <chunkio/error.hpp>

#include "cli/parse_number.hpp"
#include "cli/quote.hpp"
#include "h5pack/sparse/parallel_parse.hpp"

namespace h5pack {

namespace {

using chunkio::DType;
using chunkio::Error;
using chunkio::ErrorCode;

enum class Symmetry { general, symmetric, skew };

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

/// The next word of a line; empty at its end.
std::string_view next_word(std::string_view& line) {
  while (!line.empty() && is_blank(line.front())) line.remove_prefix(1);
  std::size_t end = 0;
  while (end < line.size() && !is_blank(line[end])) ++end;
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(end);
  return word;
}

/// The lines of a block, with their numbers.
class Lines {
 public:
  explicit Lines(const LineBlock& block) : text_(block.text), number_(block.first_line - 1) {}

  bool next(std::string_view& line) {
    if (text_.empty()) return false;
    const std::size_t end = std::min(text_.find('\n'), text_.size());
    line = text_.substr(0, end);
    text_.remove_prefix(std::min(end + 1, text_.size()));
    ++number_;
    return true;
  }
  [[nodiscard]] std::int64_t number() const noexcept { return number_; }
  [[nodiscard]] std::string_view rest() const noexcept { return text_; }

 private:
  std::string_view text_;
  std::int64_t number_;
};

struct ParsedEntries {
  std::vector<Entry> entries = {};
  std::int64_t num_lines = 0;  ///< Of entries.
  std::int64_t last_line = 0;  ///< Of those, the number of the last one.
  std::int64_t bytes = 0;
  std::exception_ptr failure = {};  ///< Behind those lines.
};

class MtxSource final : public MatrixSource {
 public:
  MtxSource(const MatrixRequest& request, std::unique_ptr<ByteStream> stream)
      : request_(request), stream_(std::move(stream)), blocks_(*stream_, false) {
    read_header();
    dtype_ = request.dtype.value_or(DType::float32);
  }

  [[nodiscard]] DType dtype() const override { return dtype_; }
  [[nodiscard]] Duplicates duplicates() const override { return Duplicates::sum; }
  [[nodiscard]] nlohmann::ordered_json description() const override {
    return {{"kind", "mtx"}, {"path", request_.input}};
  }
  [[nodiscard]] std::int64_t num_units() const override { return num_lines_; }
  [[nodiscard]] std::int64_t num_rows() const override { return rows_; }
  [[nodiscard]] std::int64_t num_columns() const override { return columns_; }
  void read(const EntrySink& sink, const std::function<void(std::int64_t)>& advance) override;

 private:
  void read_header();
  void read_banner(std::string_view line);
  void read_size(std::string_view line, std::int64_t number);
  [[nodiscard]] ParsedEntries parse(const LineBlock& block) const;
  void add_line(std::string_view line, std::int64_t number, std::vector<Entry>& entries) const;
  [[nodiscard]] std::uint32_t index_of(std::string_view word, std::int64_t most, const char* what,
                                       std::int64_t number) const;
  [[nodiscard]] std::uint64_t value_of(std::string_view word, bool negated,
                                       std::int64_t number) const;
  [[nodiscard]] Error damaged(std::int64_t line, const std::string& why) const {
    return Error(ErrorCode::corrupt_data,
                 stream_->name() + " line " + std::to_string(line) + ": " + why);
  }

  MatrixRequest request_;
  DType dtype_ = DType::float32;
  std::unique_ptr<ByteStream> stream_;
  LineBlocks blocks_;
  LineBlock first_;  // What is behind the header.
  bool pattern_ = false;
  Symmetry symmetry_ = Symmetry::general;
  std::int64_t rows_ = 0, columns_ = 0, num_lines_ = 0;
};

void MtxSource::read_banner(std::string_view line) {
  std::string lower(line);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::string_view words = lower;
  next_word(words);  // %%MatrixMarket
  const std::string_view object = next_word(words);
  const std::string_view format = next_word(words);
  const std::string_view field = next_word(words);
  const std::string_view symmetry = next_word(words);
  const auto refuse = [&](std::string_view what, const char* known) {
    throw Error(ErrorCode::unsupported, stream_->name() + " line 1: " + cli::quote(what) +
                                            " is not supported; " + known + " is");
  };
  if (object != "matrix") refuse(object, "matrix");
  if (format != "coordinate") refuse(format, "coordinate, the sparse format,");
  if (field != "real" && field != "double" && field != "integer" && field != "pattern") {
    refuse(field, "real, integer or pattern");
  }
  pattern_ = field == "pattern";
  if (symmetry == "symmetric") {
    symmetry_ = Symmetry::symmetric;
  } else if (symmetry == "skew-symmetric" && !pattern_) {
    symmetry_ = Symmetry::skew;
  } else if (symmetry != "general") {
    refuse(symmetry, "general, symmetric or skew-symmetric");
  }
}

void MtxSource::read_size(std::string_view line, std::int64_t number) {
  for (std::int64_t* target : {&rows_, &columns_, &num_lines_}) {
    const std::string_view word = next_word(line);
    const auto value = cli::parse_number<std::int64_t>(word);
    if (!value || *value < (target == &num_lines_ ? 0 : 1)) {
      throw damaged(number, cli::quote(word) + " where rows, columns and entries are counted");
    }
    *target = *value;
  }
  if (!next_word(line).empty()) throw damaged(number, "more than rows, columns and entries");
  if (rows_ >= kMaxAxis || columns_ >= kMaxAxis) {
    throw Error(ErrorCode::unsupported, stream_->name() + " line " + std::to_string(number) + ": " +
                                            std::to_string(rows_) + " rows and " +
                                            std::to_string(columns_) +
                                            " columns; less than 2^32 of each are supported");
  }
  if (symmetry_ != Symmetry::general && rows_ != columns_) {
    throw damaged(number, "a symmetric matrix has as many rows as columns, not " +
                              std::to_string(rows_) + " and " + std::to_string(columns_));
  }
}

void MtxSource::read_header() {
  const std::optional<LineBlock> block = blocks_.next();
  if (!block) throw Error(ErrorCode::corrupt_data, stream_->name() + " is empty");
  Lines lines(*block);
  std::string_view line;
  lines.next(line);
  read_banner(line);
  // Comments in front of the size may not be longer than a block, a megabyte.
  while (lines.next(line)) {
    std::string_view words = line;
    const std::string_view word = next_word(words);
    if (word.empty() || word.front() == '%') continue;
    read_size(line, lines.number());
    first_ = {.text = std::string(lines.rest()), .first_line = lines.number() + 1};
    return;
  }
  throw damaged(lines.number(), "the file ends before the line of its size");
}

std::uint32_t MtxSource::index_of(std::string_view word, std::int64_t most, const char* what,
                                  std::int64_t number) const {
  const auto value = cli::parse_number<std::int64_t>(word);
  if (value && *value >= 1 && *value <= most) return static_cast<std::uint32_t>(*value - 1);
  throw damaged(number, std::string(what) + " " + cli::quote(word) +
                            "; they are numbered from 1 to " + std::to_string(most));
}

std::uint64_t MtxSource::value_of(std::string_view word, bool negated, std::int64_t number) const {
  const NumberText value = encode_text(word, negated, dtype_);
  if (!value.is_number) throw damaged(number, cli::quote(word) + " is no number");
  if (!value.bits) throw damaged(number, misfit(std::string(word), dtype_));
  return *value.bits;
}

void MtxSource::add_line(std::string_view line, std::int64_t number,
                         std::vector<Entry>& entries) const {
  const std::uint32_t row = index_of(next_word(line), rows_, "row", number);
  const std::uint32_t column = index_of(next_word(line), columns_, "column", number);
  const std::string_view value = pattern_ ? std::string_view("1") : next_word(line);
  if (value.empty()) throw damaged(number, "an entry without a value");
  if (!next_word(line).empty()) throw damaged(number, "more than one entry");
  const auto add = [&](std::uint32_t i, std::uint32_t j, bool negated) {
    entries.push_back({i, j, value_of(value, negated, number)});
  };
  add(row, column, false);
  if (symmetry_ != Symmetry::general && row != column) {
    add(column, row, symmetry_ == Symmetry::skew);
  }
}

ParsedEntries MtxSource::parse(const LineBlock& block) const {
  ParsedEntries parsed;
  try {
    Lines lines(block);
    std::string_view line;
    while (lines.next(line)) {
      std::string_view words = line;
      const std::string_view word = next_word(words);
      if (word.empty() || word.front() == '%') continue;
      add_line(line, lines.number(), parsed.entries);
      ++parsed.num_lines;
      parsed.last_line = lines.number();
    }
  } catch (...) {
    parsed.failure = std::current_exception();
  }
  return parsed;
}

void MtxSource::read(const EntrySink& sink, const std::function<void(std::int64_t)>& advance) {
  std::int64_t done = 0;
  std::int64_t last_line = first_.first_line - 1;
  const auto take = [&](ParsedEntries&& parsed) {
    done += parsed.num_lines;
    if (parsed.num_lines > 0) last_line = parsed.last_line;
    if (done > num_lines_) {
      throw damaged(last_line, "the header counts " + std::to_string(num_lines_) +
                                   " entries, and there are more");
    }
    sink(parsed.entries);
    if (parsed.failure) std::rethrow_exception(parsed.failure);
    advance(parsed.num_lines);
  };
  take(parse(first_));
  first_ = {};
  parse_blocks<ParsedEntries>(
      blocks_, request_.memory_budget, [this](const LineBlock& block) { return parse(block); },
      take);
  if (done != num_lines_) {
    throw damaged(last_line, "the file ends after " + std::to_string(done) + " of " +
                                 std::to_string(num_lines_) + " entries");
  }
}

}  // namespace

std::unique_ptr<MatrixSource> open_mtx(const MatrixRequest& request,
                                       std::unique_ptr<ByteStream> stream) {
  return std::make_unique<MtxSource>(request, std::move(stream));
}

}  // namespace h5pack
