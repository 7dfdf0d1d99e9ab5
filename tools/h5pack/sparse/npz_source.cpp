#include "h5pack/sparse/npz_source.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include <chunkio/error.hpp>

#include "cli/byte_size.hpp"
#include "cli/quote.hpp"
#include "h5pack/sparse/npy_array.hpp"
#include "h5pack/sparse/zip_file.hpp"

namespace h5pack {

namespace {

using chunkio::DType;
using chunkio::Error;
using chunkio::ErrorCode;

/// Entries that are read at once.
constexpr std::int64_t kBlock = std::int64_t{1} << 16;

class NpzSource final : public MatrixSource {
 public:
  explicit NpzSource(const MatrixRequest& request)
      : request_(request),
        archive_(request.input),
        format_(format_of(archive_)),
        data_(archive_, "data"),
        first_(archive_, format_ == "coo" ? "row" : "indices"),
        second_(archive_, format_ == "coo" ? "col" : "indptr"),
        dtype_(request.dtype.value_or(data_.dtype())) {
    read_shape();
    check_sizes();
  }

  [[nodiscard]] DType dtype() const override { return dtype_; }
  [[nodiscard]] Duplicates duplicates() const override { return Duplicates::sum; }
  [[nodiscard]] nlohmann::ordered_json description() const override {
    return {{"kind", "npz"}, {"path", request_.input}, {"format", format_}};
  }
  [[nodiscard]] std::int64_t num_units() const override { return data_.size(); }
  [[nodiscard]] std::int64_t num_rows() const override { return rows_; }
  [[nodiscard]] std::int64_t num_columns() const override { return columns_; }
  void read(const EntrySink& sink, const std::function<void(std::int64_t)>& advance) override;

 private:
  static std::string format_of(const ZipFile& archive);
  void read_shape();
  void check_sizes() const;
  void read_pointers();
  void number_outer(std::int64_t first, std::span<std::int64_t> out);
  void check_axis(std::span<const std::int64_t> numbers, std::int64_t most, const char* what,
                  std::int64_t first) const;

  MatrixRequest request_;
  ZipFile archive_;
  std::string format_;
  NpyArray data_, first_, second_;
  DType dtype_;
  std::int64_t rows_ = 0, columns_ = 0;
  // Of csr and csc: where each row, or column, begins; and the one at hand.
  std::vector<std::int64_t> pointers_;
  std::size_t outer_ = 0;
};

std::string NpzSource::format_of(const ZipFile& archive) {
  if (!archive.entries().contains("format.npy")) {
    throw Error(ErrorCode::unsupported,
                cli::quote(archive.path()) +
                    " holds arrays, but no sparse matrix: save one with scipy.sparse.save_npz");
  }
  const std::string format = NpyArray(archive, "format").read_text();
  if (format == "csr" || format == "csc" || format == "coo") return format;
  throw Error(ErrorCode::unsupported, cli::quote(archive.path()) + " holds a matrix of format " +
                                          cli::quote(format) +
                                          "; save matrix.tocsr(), csc and coo are read as well");
}

void NpzSource::read_shape() {
  NpyArray shape(archive_, "shape");
  std::array<std::int64_t, 2> dims{};
  if (shape.size() != 2) throw archive_.damaged("'shape.npy' is not that of a matrix");
  shape.read_integers(dims);
  rows_ = dims[0];
  columns_ = dims[1];
  if (rows_ < 1 || columns_ < 1 || rows_ >= kMaxAxis || columns_ >= kMaxAxis) {
    throw Error(ErrorCode::unsupported,
                cli::quote(archive_.path()) + " has " + std::to_string(rows_) + " rows and " +
                    std::to_string(columns_) + " columns; 1 to 2^32 - 1 of each are supported");
  }
}

void NpzSource::check_sizes() const {
  const auto expect = [&](const NpyArray& array, const char* name, std::int64_t size) {
    if (array.size() == size) return;
    throw archive_.damaged(std::string("'") + name + "' has " + std::to_string(array.size()) +
                           " elements, " + std::to_string(size) + " are expected");
  };
  if (format_ == "coo") {
    expect(first_, "row.npy", data_.size());
    expect(second_, "col.npy", data_.size());
    return;
  }
  expect(first_, "indices.npy", data_.size());
  expect(second_, "indptr.npy", (format_ == "csr" ? rows_ : columns_) + 1);
  if (second_.size() <= request_.memory_budget / 16) return;
  throw Error(ErrorCode::out_of_resources,
              cli::quote(archive_.path()) + ": its index pointers take " +
                  cli::format_bytes(8 * second_.size()) + ", more than half of --memory-budget",
              "memory_budget");
}

void NpzSource::read_pointers() {
  pointers_.resize(static_cast<std::size_t>(second_.size()));
  second_.read_integers(pointers_);
  const auto fall = std::adjacent_find(pointers_.begin(), pointers_.end(), std::greater<>());
  if (fall != pointers_.end() || pointers_.front() != 0 || pointers_.back() != data_.size()) {
    throw archive_.damaged("'indptr.npy' does not ascend from 0 to the " +
                           std::to_string(data_.size()) + " entries");
  }
}

/// The row (csr) or column (csc) of each entry from the first on.
void NpzSource::number_outer(std::int64_t first, std::span<std::int64_t> out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    while (pointers_[outer_ + 1] <= first + static_cast<std::int64_t>(i)) ++outer_;
    out[i] = static_cast<std::int64_t>(outer_);
  }
}

void NpzSource::check_axis(std::span<const std::int64_t> numbers, std::int64_t most,
                           const char* what, std::int64_t first) const {
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] >= 0 && numbers[i] < most) continue;
    throw archive_.damaged("entry " + std::to_string(first + static_cast<std::int64_t>(i)) +
                           " has " + what + " " + std::to_string(numbers[i]) + " of " +
                           std::to_string(most));
  }
}

void NpzSource::read(const EntrySink& sink, const std::function<void(std::int64_t)>& advance) {
  if (format_ != "coo") read_pointers();
  std::vector<std::int64_t> rows(kBlock);
  std::vector<std::int64_t> columns(kBlock);
  std::vector<std::uint64_t> bits(kBlock);
  std::vector<Entry> entries(kBlock);
  for (std::int64_t first = 0; first < data_.size(); first += kBlock) {
    const auto count = static_cast<std::size_t>(std::min(kBlock, data_.size() - first));
    const auto some_rows = std::span(rows).first(count);
    const auto some_columns = std::span(columns).first(count);
    if (format_ == "coo") {
      first_.read_integers(some_rows);
      second_.read_integers(some_columns);
    } else {
      first_.read_integers(format_ == "csr" ? some_columns : some_rows);
      number_outer(first, format_ == "csr" ? some_rows : some_columns);
    }
    check_axis(some_rows, rows_, "row", first);
    check_axis(some_columns, columns_, "column", first);
    data_.read_values(std::span(bits).first(count), dtype_);
    for (std::size_t i = 0; i < count; ++i) {
      entries[i] = {static_cast<std::uint32_t>(rows[i]), static_cast<std::uint32_t>(columns[i]),
                    bits[i]};
    }
    sink(std::span(entries).first(count));
    advance(static_cast<std::int64_t>(count));
  }
}

}  // namespace

std::unique_ptr<MatrixSource> open_npz(const MatrixRequest& request) {
  return std::make_unique<NpzSource>(request);
}

}  // namespace h5pack
