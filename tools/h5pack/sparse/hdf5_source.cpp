#include "h5pack/sparse/hdf5_source.hpp"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include <chunkio/dataset.hpp>
#include <chunkio/error.hpp>

#include "cli/quote.hpp"
#include "h5pack/dataset/structure_check.hpp"
#include "h5pack/sources/listing.hpp"
#include "h5pack/sources/stored_rows.hpp"

namespace h5pack {

namespace {

using chunkio::DType;
using chunkio::Error;
using chunkio::ErrorCode;
using chunkio::FieldInfo;
using chunkio::MatrixAxis;

/// The column of a table that has its names.
constexpr std::string_view kNames = "_index";
/// The column with the digest of each row, which the new file gets anew.
constexpr std::string_view kDigests = "sample_digests";
/// Rows, and entries, that are read at once.
constexpr std::int64_t kBlock = std::int64_t{1} << 16;

/// Names one behind the other.
class NameList {
 public:
  void add(std::string_view name) {
    text_ += name;
    ends_.push_back(text_.size());
  }
  [[nodiscard]] bool empty() const noexcept { return ends_.empty(); }
  [[nodiscard]] std::string_view operator[](std::int64_t number) const noexcept {
    const auto i = static_cast<std::size_t>(number);
    const std::uint64_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(text_).substr(begin, ends_[i] - begin);
  }
  [[nodiscard]] std::int64_t bytes() const noexcept {
    return static_cast<std::int64_t>(text_.capacity() + ends_.capacity() * sizeof(ends_[0]));
  }

 private:
  std::string text_;
  std::vector<std::uint64_t> ends_;
};

/// The column of a table that a field becomes: `obs/NAME` and `NAME` are called NAME, and so is
/// `obs/NAME/codes` of texts. Empty: none.
std::string column_of(const FieldInfo& field, bool of_texts) {
  if (field.row_shape.rank() != 0) return {};
  constexpr std::string_view kTable = "obs/";
  constexpr std::string_view kCodes = "/codes";
  std::string name = field.name.starts_with(kTable) ? field.name.substr(kTable.size()) : field.name;
  if (of_texts) name.resize(name.size() - kCodes.size());
  return name.find('/') == std::string::npos ? name : "";
}

class Hdf5Source final : public MatrixSource {
 public:
  explicit Hdf5Source(const MatrixRequest& request)
      : request_(request),
        dataset_(chunkio::Dataset::open(request.input, {.images = request.matrix,
                                                        .columns_as_rows = true,
                                                        .allow_external = request.allow_external,
                                                        .probe = request.probe})),
        info_(dataset_.info()) {
    if (!info_.sparse) {
      throw Error(ErrorCode::unsupported, cli::quote(info_.path) +
                                              " holds no sparse matrix that leads, but " +
                                              cli::quote(info_.leading.name) +
                                              "; name the group of the matrix with --images");
    }
    refuse_damaged(info_);
    if (info_.num_samples >= kMaxAxis || info_.sparse->columns >= kMaxAxis) {
      throw Error(ErrorCode::unsupported, cli::quote(info_.path) + " has " +
                                              std::to_string(num_rows()) + " rows and " +
                                              std::to_string(num_columns()) +
                                              " columns; 1 to 2^32 - 1 of each are supported");
    }
    find_fields();
  }

  [[nodiscard]] DType dtype() const override {
    return request_.dtype.value_or(info_.leading.dtype);
  }
  [[nodiscard]] Duplicates duplicates() const override { return Duplicates::sum; }
  [[nodiscard]] nlohmann::ordered_json description() const override {
    nlohmann::ordered_json description = {{"kind", "hdf5"},
                                          {"path", request_.input},
                                          {"images", info_.leading.name},
                                          {"format", by_columns() ? "csc" : "csr"}};
    if (!info_.uuid.empty()) description["uuid"] = info_.uuid;
    return description;
  }
  [[nodiscard]] std::vector<std::string> files() const override {
    std::vector<std::string> files;
    for (const chunkio::ShardFile& shard : info_.shards) files.push_back(shard.path);
    return files.empty() ? MatrixSource::files() : files;
  }
  [[nodiscard]] std::int64_t num_units() const override { return info_.sparse->num_entries; }
  [[nodiscard]] std::int64_t num_rows() const override {
    return by_columns() ? info_.sparse->columns : info_.num_samples;
  }
  [[nodiscard]] std::int64_t num_columns() const override {
    return by_columns() ? info_.num_samples : info_.sparse->columns;
  }
  [[nodiscard]] NameOf row_names() const override { return of(by_columns() ? second_ : first_); }
  [[nodiscard]] NameOf column_names() const override { return of(by_columns() ? first_ : second_); }
  [[nodiscard]] std::int64_t names_bytes() const override {
    return first_.bytes() + second_.bytes() + categories_bytes_;
  }
  [[nodiscard]] std::vector<FieldInfo> row_fields() const override { return fields_; }
  [[nodiscard]] const Categories& row_categories() const override { return categories_; }
  void read_row_field(const FieldInfo& field, std::span<std::byte> out) const override {
    const auto i = static_cast<std::size_t>(
        std::find_if(fields_.begin(), fields_.end(),
                     [&](const FieldInfo& one) { return one.name == field.name; }) -
        fields_.begin());
    dataset_.read_field(paths_.at(i), 0, info_.num_samples, out);
  }
  [[nodiscard]] std::vector<std::string> left_out() const override { return left_out_; }
  [[nodiscard]] std::optional<std::uint64_t> shuffled_with() const override {
    if (info_.order != "shuffled") return std::nullopt;
    return info_.seed.value_or(0);
  }

  void check(const std::stop_token& stop, bool quiet) const override {
    check_digests(dataset_, stop, quiet);
  }
  void read(const EntrySink& sink, const std::function<void(std::int64_t)>& advance) override;

 private:
  [[nodiscard]] bool by_columns() const { return info_.sparse->transposed; }
  [[nodiscard]] static NameOf of(const NameList& names) {
    if (names.empty()) return {};
    return [&names](std::int64_t number) { return names[number]; };
  }
  void find_fields();
  [[nodiscard]] std::optional<std::vector<std::string>> categories_of(const FieldInfo& field) const;
  void check_memory() const;
  void read_names(MatrixAxis axis, NameList& names) const;
  void read_rows(std::int64_t first, std::span<const std::int64_t> begins, const EntrySink& sink,
                 const std::function<void(std::int64_t)>& advance);

  MatrixRequest request_;
  chunkio::Dataset dataset_;
  const chunkio::DatasetInfo& info_;
  NameList first_, second_;  // Of what lies one after another in the file, and of what is in it.
  std::vector<FieldInfo> fields_;
  std::vector<std::string> paths_;  // Of those in the file.
  Categories categories_;
  std::int64_t categories_bytes_ = 0;
  std::vector<std::string> left_out_;
  // Of the entries at hand.
  std::vector<std::int64_t> columns_;
  std::vector<std::byte> values_;
  std::vector<std::uint64_t> bits_;
  std::vector<Entry> entries_;
};

/// Returns the texts of a field. Those that cannot be carried over count as none: files may number
/// them differently, or store them in a way that is not read.
std::optional<std::vector<std::string>> Hdf5Source::categories_of(const FieldInfo& field) const {
  // None of its fields is carried over.
  if (by_columns()) return std::nullopt;
  try {
    return dataset_.categories(field.name);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unsupported) throw;
    return std::nullopt;
  }
}

void Hdf5Source::find_fields() {
  std::vector<FieldInfo> all = info_.fields;
  if (info_.labels) all.insert(all.begin(), *info_.labels);
  for (const FieldInfo& field : all) {
    std::optional<std::vector<std::string>> texts = categories_of(field);
    const std::string name = column_of(field, texts.has_value());
    const bool taken = std::any_of(fields_.begin(), fields_.end(),
                                   [&](const FieldInfo& one) { return one.name == name; });
    // Only files of this library promise that it names a row once.
    const bool foreign =
        name == kSourceIndex && (!info_.format_version || field.dtype != DType::int64);
    if (by_columns() || name.empty() || name == kNames || name == kDigests || taken || foreign) {
      left_out_.push_back(field.name);
      continue;
    }
    fields_.push_back({name, field.dtype, {}});
    paths_.push_back(field.name);
    if (!texts) continue;
    for (const std::string& text : *texts) {
      categories_bytes_ += static_cast<std::int64_t>(sizeof(text) + text.size());
    }
    check_memory();
    categories_[name] = *std::move(texts);
  }
  // Those of the table of rows that are texts, or not of its length; of a matrix that is stored by
  // columns none runs parallel to what the library takes as rows.
  const std::string& names = by_columns() ? info_.sparse->column_names : info_.sparse->row_names;
  for (const std::string& described : info_.left_out) {
    if (described.starts_with("obs") && !described.starts_with(names + " ")) {
      left_out_.push_back(described);
    }
  }
}

void Hdf5Source::read_names(MatrixAxis axis, NameList& names) const {
  dataset_.read_names(axis, [&](std::string_view name) {
    names.add(name);
    check_memory();
  });
}

void Hdf5Source::check_memory() const {
  // Half is for the entries.
  if (names_bytes() <= request_.memory_budget / 2) return;
  throw Error(ErrorCode::out_of_resources,
              cli::quote(info_.path) +
                  ": names of rows, columns and categories do not fit half of --memory-budget; "
                  "raise it",
              "memory_budget");
}

/// \param begins  where rows from `first` on begin, and the end of the last.
void Hdf5Source::read_rows(std::int64_t first, std::span<const std::int64_t> begins,
                           const EntrySink& sink,
                           const std::function<void(std::int64_t)>& advance) {
  const std::size_t value_bytes = size_of(info_.leading.dtype);
  std::size_t row = 0;  // In begins.
  for (std::int64_t at = begins.front(); at < begins.back();) {
    const auto count = static_cast<std::size_t>(std::min(kBlock, begins.back() - at));
    columns_.resize(count);
    values_.resize(count * value_bytes);
    bits_.resize(count);
    entries_.resize(count);
    dataset_.read_entries(at, columns_, values_);
    encode(values_, info_.leading.dtype, dtype(), bits_, [&](std::size_t i) {
      return cli::quote(info_.path) + ": entry " +
             std::to_string(at + static_cast<std::int64_t>(i)) + " of " +
             cli::quote(info_.leading.name);
    });
    for (std::size_t i = 0; i < count; ++i) {
      while (begins[row + 1] <= at + static_cast<std::int64_t>(i)) ++row;
      const auto outer = static_cast<std::uint32_t>(first + static_cast<std::int64_t>(row));
      const auto inner = static_cast<std::uint32_t>(columns_[i]);
      entries_[i] = by_columns() ? Entry{inner, outer, bits_[i]} : Entry{outer, inner, bits_[i]};
    }
    sink(entries_);
    advance(static_cast<std::int64_t>(count));
    at += static_cast<std::int64_t>(count);
  }
}

void Hdf5Source::read(const EntrySink& sink, const std::function<void(std::int64_t)>& advance) {
  read_names(MatrixAxis::rows, first_);
  read_names(MatrixAxis::columns, second_);
  std::vector<std::int64_t> begins;
  for (std::int64_t first = 0; first < info_.num_samples; first += kBlock) {
    begins.resize(static_cast<std::size_t>(std::min(kBlock, info_.num_samples - first)) + 1);
    dataset_.read_row_begins(first, begins);
    read_rows(first, begins, sink, advance);
  }
}

}  // namespace

std::unique_ptr<MatrixSource> open_hdf5_matrix(const MatrixRequest& request) {
  return std::make_unique<Hdf5Source>(request);
}

}  // namespace h5pack
