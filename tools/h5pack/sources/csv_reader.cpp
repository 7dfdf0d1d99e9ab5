#include "h5pack/sources/csv_reader.hpp"

#include <utility>

#include <chunkio/error.hpp>

#include "cli/quote.hpp"

namespace h5pack {

namespace {

[[noreturn]] void throw_malformed(const std::string& place, const std::string& what) {
  throw chunkio::Error(chunkio::ErrorCode::corrupt_data, place + ": " + what);
}

}  // namespace

CsvReader::CsvReader(std::string_view text, std::string path, std::int64_t first_line)
    : text_(text), path_(std::move(path)), line_(first_line) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (first_line == 1 && text_.starts_with(kByteOrderMark)) position_ = kByteOrderMark.size();
  // Paths would end at it. Text in UTF-16 has one beside every letter.
  if (text_.find('\0') != std::string_view::npos) {
    throw_malformed(cli::quote(path_), "it contains zero bytes; save it as UTF-8 text");
  }
}

std::string CsvReader::place() const {
  return cli::quote(path_) + " line " + std::to_string(record_line_);
}

bool CsvReader::skip_line_end() {
  const std::string_view rest = text_.substr(position_);
  if (rest.starts_with("\r\n")) {
    position_ += 2;
  } else if (rest.starts_with('\n')) {
    position_ += 1;
  } else {
    return false;
  }
  ++line_;
  return true;
}

void CsvReader::read_quoted(std::string& field) {
  ++position_;
  for (;;) {
    if (position_ == text_.size()) {
      throw_malformed(place(), "a quoted field is never closed");
    }
    const char c = text_[position_++];
    if (c == '"') {
      if (position_ == text_.size() || text_[position_] != '"') break;
      ++position_;
    }
    if (c == '\n') ++line_;
    field += c;
  }
  const std::string_view rest = text_.substr(position_);
  if (!rest.empty() && rest[0] != ',' && rest[0] != '\n' && !rest.starts_with("\r\n")) {
    throw_malformed(place(), "text follows a closing quote; quotes inside a field are doubled");
  }
}

void CsvReader::read_plain(std::string& field) {
  std::size_t end = position_;
  for (; end < text_.size(); ++end) {
    const char c = text_[end];
    if (c == ',' || c == '\n' || (c == '\r' && text_.substr(end).starts_with("\r\n"))) break;
    if (c == '"') {
      throw_malformed(place(),
                      "a quote inside an unquoted field; quote the field and double the quote");
    }
  }
  field.assign(text_.substr(position_, end - position_));
  position_ = end;
}

bool CsvReader::next(std::vector<std::string>& fields) {
  while (skip_line_end()) {
  }
  if (position_ == text_.size()) return false;
  record_line_ = line_;
  std::size_t count = 0;
  for (;;) {
    if (count == fields.size()) fields.emplace_back();
    std::string& field = fields[count++];
    field.clear();
    if (position_ < text_.size() && text_[position_] == '"') {
      read_quoted(field);
    } else {
      read_plain(field);
    }
    if (position_ == text_.size() || text_[position_] != ',') break;
    ++position_;
  }
  fields.resize(count);
  skip_line_end();
  return true;
}

}  // namespace h5pack
