#include "h5pack/sparse/csr_output.hpp"

#include <algorithm>
#include <filesystem>
#include <string_view>

#include <chunkio/dataset.hpp>
#include <chunkio/error.hpp>

#include "h5pack/sources/file_stamps.hpp"
#include "h5pack/sources/listing.hpp"

namespace h5pack {

namespace {

using chunkio::Error;
using chunkio::ErrorCode;

/// Rows of a field that are brought into order at once.
constexpr std::size_t kBlock = std::size_t{1} << 16;

}  // namespace

CsrOutput::CsrOutput(const MatrixSource& source, const std::string& path, const CsrOptions& options,
                     const OutputRows& rows, const std::stop_token& stop)
    : source_(source), path_(path), options_(options), rows_(rows) {
  make_parts();
  for (Part& part : parts_) {
    part.writer.emplace(part.path, specification(part),
                        chunkio::PublishOptions{.overwrite = options_.overwrite, .stop = stop});
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

/// Equal in the shards of this matrix, packed with these options, and in no others.
std::string CsrOutput::shard_set() const {
  const auto bytes = std::as_bytes(std::span(rows_.lengths));
  return text_digest(options_.options_json + std::to_string(rows_.num_columns) +
                     text_digest({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
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
  if (options_.shards > 0) {
    spec.shard = chunkio::ShardInfo{.index = &part - parts_.data(),
                                    .count = options_.shards,
                                    .first_row = part.first_row,
                                    .total_rows = num_rows(),
                                    .set = shard_set()};
  }
  return spec;
}

/// Shards differ by one row at most.
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
  // No product overflows: rows are below 2^32, shards at most 2^12.
  for (std::int64_t i = 0; i < options_.shards; ++i) {
    const std::int64_t first = num_rows() * i / options_.shards;
    parts_.push_back({.path = chunkio::shard_path(path_, i, options_.shards),
                      .first_row = first,
                      .num_rows = num_rows() * (i + 1) / options_.shards - first});
  }
}

/// Publishes the files, one after the other.
std::int64_t CsrOutput::close() {
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    try {
      parts_[i].writer->close();
    } catch (const Error& error) {
      if (i == 0) throw;
      throw error.with_message(error.what() + ("; already finished: " + std::to_string(i) + " of " +
                                               std::to_string(parts_.size()) + " shards"));
    }
    bytes += static_cast<std::int64_t>(std::filesystem::file_size(parts_[i].path));
  }
  return bytes;
}

}  // namespace h5pack
