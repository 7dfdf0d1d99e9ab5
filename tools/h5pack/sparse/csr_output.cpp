#include "h5pack/sparse/csr_output.hpp"

#include <algorithm>
#include <filesystem>
#include <span>
#include <string_view>

#include <chunkio/dataset.hpp>
#include <chunkio/error.hpp>

#include "h5pack/sources/listing.hpp"

namespace h5pack {

namespace {

using chunkio::Error;
using chunkio::ErrorCode;

/// Rows of a field that are brought into order at once.
constexpr std::size_t kBlock = std::size_t{1} << 16;

}  // namespace

Error no_entries(const MatrixSource& source) {
  return Error(ErrorCode::corrupt_data, source.name() + " has no entries in these rows");
}

CsrOutput::CsrOutput(const MatrixSource& source, const std::string& path, const CsrOptions& options,
                     const OutputRows& rows, const std::stop_token& stop)
    : source_(source),
      path_(path),
      options_(options),
      rows_(rows),
      num_closed_(static_cast<std::size_t>(options.shards_done)) {
  make_parts();
  check_parts();
  for (Part& part : std::span(parts_).subspan(num_closed_)) {
    try {
      part.writer.emplace(part.path, specification(part),
                          chunkio::PublishOptions{.overwrite = options_.overwrite, .stop = stop});
    } catch (const Error& error) {
      // The source causes these errors, by its names, lengths of rows or categories.
      if (error.code() != ErrorCode::invalid_argument) throw;
      throw Error(ErrorCode::corrupt_data, source_.name() + ": " + error.what());
    }
  }
}

CsrOutput::Part& CsrOutput::part_of(std::int64_t row) {
  return *std::upper_bound(
      parts_.begin(), parts_.end(), row,
      [](std::int64_t wanted, const Part& part) { return wanted < part.end(); });
}

void CsrOutput::write_rows(std::int64_t first_row, std::int64_t count,
                           std::span<const std::int64_t> columns,
                           std::span<const std::byte> values) {
  Part& part = part_of(first_row);
  part.writer->write_rows(first_row - part.first_row, count, columns, values);
}

/// A field of all rows of the source. That of the call before stays, as one is wanted several
/// times.
const std::vector<std::byte>& CsrOutput::column(const chunkio::FieldInfo& field) {
  if (column_name_ != field.name) {
    column_name_.clear();
    column_.resize(static_cast<std::size_t>(rows_.source_rows) * size_of(field.dtype));
    source_.read_row_field(field, column_);
    column_name_ = field.name;
  }
  return column_;
}

void CsrOutput::add_fields(const Part& part, chunkio::SparseSpec& spec) {
  const auto rows = std::span(rows_.order)
                        .subspan(static_cast<std::size_t>(part.first_row),
                                 static_cast<std::size_t>(part.num_rows));
  bool has_source_index = false;
  for (const chunkio::FieldInfo& info : source_.row_fields()) {
    chunkio::FieldData field{info, {}, {}};
    field.stream = [this, info, rows](const chunkio::FieldData::Sink& sink) {
      const std::vector<std::byte>& all = column(info);
      const std::size_t bytes = size_of(info.dtype);
      std::vector<std::byte> block;
      for (std::size_t at = 0; at < rows.size(); at += kBlock) {
        block.clear();
        for (const std::int64_t row : rows.subspan(at, std::min(kBlock, rows.size() - at))) {
          const auto* const from = all.data() + static_cast<std::size_t>(row) * bytes;
          block.insert(block.end(), from, from + bytes);
        }
        sink(block);
      }
    };
    has_source_index = has_source_index || info.name == kSourceIndex;
    spec.fields.push_back(std::move(field));
  }
  if (has_source_index) return;
  chunkio::FieldData field{{kSourceIndex, chunkio::DType::int64, chunkio::Shape{}}, {}, {}};
  field.stream = [rows](const chunkio::FieldData::Sink& sink) { sink(std::as_bytes(rows)); };
  spec.fields.push_back(std::move(field));
}

chunkio::SparseSpec CsrOutput::specification(const Part& part) {
  const auto lengths = rows_.lengths.begin() + part.first_row;
  const bool shuffled = options_.order == RepackOrder::shuffled;
  const auto before =
      options_.order == RepackOrder::stored ? source_.shuffled_with() : std::nullopt;
  chunkio::SparseSpec spec{.row_lengths = {lengths, lengths + part.num_rows},
                           .num_columns = rows_.num_columns,
                           .dtype = source_.dtype(),
                           .order = shuffled || before ? "shuffled" : "source",
                           .seed = shuffled ? options_.seed : before.value_or(options_.seed),
                           .options_json = options_.options_json};
  // A row without a name is called what it was in the source.
  const MatrixSource::NameOf names = source_.row_names();
  spec.row_name = [this, names, first = part.first_row,
                   text = std::string()](std::int64_t row) mutable -> std::string_view {
    const std::int64_t number = rows_.order[static_cast<std::size_t>(first + row)];
    if (names) return names(number);
    text = std::to_string(number);
    return text;
  };
  spec.column_name = source_.column_names();
  add_fields(part, spec);
  spec.categories = source_.row_categories();
  if (options_.shards > 0) {
    spec.shard = chunkio::ShardInfo{.index = &part - parts_.data(),
                                    .count = options_.shards,
                                    .first_row = part.first_row,
                                    .total_rows = num_rows(),
                                    .set = rows_.set};
  }
  return spec;
}

void CsrOutput::make_parts() {
  if (options_.shards == 0) {
    parts_.push_back({.path = path_, .num_rows = num_rows()});
    return;
  }
  if (options_.shards > num_rows()) {
    throw Error(ErrorCode::invalid_argument,
                source_.name() + " has " + std::to_string(num_rows()) + " rows, too few for " +
                    std::to_string(options_.shards) + " shards; use at most " +
                    std::to_string(num_rows()));
  }
  for (std::int64_t i = 0; i < options_.shards; ++i) {
    const std::int64_t first = first_row_of_shard(i, options_.shards, num_rows());
    parts_.push_back({.path = chunkio::shard_path(path_, i, options_.shards),
                      .first_row = first,
                      .num_rows = first_row_of_shard(i + 1, options_.shards, num_rows()) - first});
  }
}

void CsrOutput::check_parts() const {
  for (const Part& part : std::span(parts_).subspan(num_closed_)) {
    const auto begin = rows_.lengths.begin() + part.first_row;
    const auto end = begin + part.num_rows;
    if (std::find_if(begin, end, [](std::int64_t length) { return length > 0; }) != end) continue;
    if (options_.shards == 0) {
      throw no_entries(source_);
    }
    throw Error(ErrorCode::invalid_argument, source_.name() + " has no entries in the rows of " +
                                                 part.path +
                                                 ", which could not be read; use fewer shards");
  }
}

void CsrOutput::close_until(std::int64_t row) {
  for (; num_closed_ < parts_.size() && parts_[num_closed_].end() <= row; ++num_closed_) {
    std::optional<chunkio::SparseWriter>& writer = parts_[num_closed_].writer;
    try {
      writer->close();
    } catch (const Error& error) {
      if (num_closed_ == 0) throw;
      throw error.with_message(error.what() +
                               ("; already finished: " + std::to_string(num_closed_) + " of " +
                                std::to_string(parts_.size()) + " shards"));
    }
    writer.reset();
  }
}

std::int64_t CsrOutput::file_bytes() const {
  std::int64_t bytes = 0;
  for (const Part& part : parts_) {
    bytes += static_cast<std::int64_t>(std::filesystem::file_size(part.path));
  }
  return bytes;
}

}  // namespace h5pack
