#include "h5pack/sparse/matrix_export.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <limits>
#include <string_view>
#include <utility>

#include "cli/stop_signal.hpp"
#include "h5pack/dataset/sample_table.hpp"
#include "h5pack/sparse/npz_writer.hpp"

namespace h5pack {

namespace {

using chunkio::DType;
using chunkio::MatrixAxis;

/// Rows, and entries, that are read at once.
constexpr std::int64_t kBlock = std::int64_t{1} << 16;
constexpr std::size_t kTextBytes = std::size_t{1} << 20;

constexpr const char* kRowTable = "rows.csv";
constexpr const char* kColumnTable = "columns.csv";

std::string matrix_file(MatrixFormat format) {
  return format == MatrixFormat::npz ? "matrix.npz" : "matrix.mtx";
}

/// NumPy's name of a type.
std::string descr(DType dtype) {
  const std::string size = std::to_string(size_of(dtype));
  if (dtype == DType::float32 || dtype == DType::float64) return "<f" + size;
  const bool is_signed = dtype == DType::int8 || dtype == DType::int16 || dtype == DType::int32 ||
                         dtype == DType::int64;
  return (size == "1" ? "|" : "<") + std::string(is_signed ? "i" : "u") + size;
}

std::string shape_of(std::int64_t size) { return "(" + std::to_string(size) + ",)"; }

/// A text file that is written in blocks.
class TextFile {
 public:
  explicit TextFile(cli::AtomicFolder::File file) : file_(std::move(file)) {}

  [[nodiscard]] std::string& text() noexcept { return text_; }
  void flush_if_full() {
    if (text_.size() >= kTextBytes) flush();
  }
  void close() {
    flush();
    file_.close();
  }

 private:
  void flush() {
    file_.write({reinterpret_cast<const unsigned char*>(text_.data()), text_.size()});
    text_.clear();
  }

  cli::AtomicFolder::File file_;
  std::string text_;
};

/// Calls take(first, begins) for rows in blocks: where each begins, and the end of the last.
template <class Take>
void for_each_rows(const chunkio::Dataset& dataset, const Take& take) {
  std::vector<std::int64_t> begins;
  for (std::int64_t first = 0; first < dataset.size(); first += kBlock) {
    cli::StopSignal::check();
    begins.resize(static_cast<std::size_t>(std::min(kBlock, dataset.size() - first)) + 1);
    dataset.read_row_begins(first, begins);
    take(first, std::span<const std::int64_t>(begins));
  }
}

enum class Parts : std::uint8_t { columns, values, both };

/// Calls take(columns, values) for entries [begin, end), in blocks. Parts that are not wanted are
/// empty.
template <class Take>
void for_each_entries(const chunkio::Dataset& dataset, std::int64_t begin, std::int64_t end,
                      Parts parts, const Take& take) {
  std::vector<std::int64_t> columns;
  std::vector<std::byte> values;
  for (std::int64_t at = begin; at < end; at += kBlock) {
    cli::StopSignal::check();
    const auto count = static_cast<std::size_t>(std::min(kBlock, end - at));
    if (parts != Parts::values) columns.resize(count);
    if (parts != Parts::columns) values.resize(count * size_of(dataset.info().leading.dtype));
    dataset.read_entries(at, columns, values);
    take(std::span<const std::int64_t>(columns), std::span<const std::byte>(values));
  }
}

/// Adds numbers as `Index`.
template <class Index>
void add_indices(NpzWriter& out, std::span<const std::int64_t> numbers) {
  std::vector<Index> stored(numbers.size());
  std::transform(numbers.begin(), numbers.end(), stored.begin(),
                 [](std::int64_t number) { return static_cast<Index>(number); });
  out.add(std::as_bytes(std::span(stored)));
}

void write_npz(const chunkio::Dataset& dataset, const cli::AtomicFolder& folder,
               cli::Progress& progress) {
  const chunkio::DatasetInfo& info = dataset.info();
  const std::int64_t entries = info.sparse->num_entries;
  // One type for both, as scipy has it.
  const bool narrow = std::max(entries, info.sparse->columns) <= std::numeric_limits<int>::max();
  const DType index = narrow ? DType::int32 : DType::int64;
  const auto index_bytes = static_cast<std::int64_t>(size_of(index));
  const auto add = [&](NpzWriter& out, std::span<const std::int64_t> numbers) {
    narrow ? add_indices<std::int32_t>(out, numbers) : add_indices<std::int64_t>(out, numbers);
  };
  NpzWriter out(folder.create(matrix_file(MatrixFormat::npz)));
  out.begin("indices", descr(index), shape_of(entries), entries * index_bytes);
  for_each_entries(dataset, 0, entries, Parts::columns, [&](auto columns, auto) {
    add(out, columns);
    progress.add(std::ssize(columns));
  });
  out.begin("indptr", descr(index), shape_of(dataset.size() + 1),
            (dataset.size() + 1) * index_bytes);
  for_each_rows(dataset, [&](std::int64_t first, std::span<const std::int64_t> begins) {
    // The end of a block is the begin of the next.
    add(out, first == 0 ? begins : begins.subspan(1));
  });
  constexpr std::string_view kFormat = "csr";
  out.begin("format", "|S3", "()", kFormat.size());
  out.add(std::as_bytes(std::span(kFormat)));
  const std::array<std::int64_t, 2> shape = {dataset.size(), info.sparse->columns};
  out.begin("shape", descr(DType::int64), "(2,)", sizeof(shape));
  out.add(std::as_bytes(std::span(shape)));
  const auto value_bytes = static_cast<std::int64_t>(size_of(info.leading.dtype));
  out.begin("data", descr(info.leading.dtype), shape_of(entries), entries * value_bytes);
  for_each_entries(dataset, 0, entries, Parts::values, [&](auto, auto values) {
    out.add(values);
    progress.add(std::ssize(values) / value_bytes);
  });
  out.close();
}

void append_count(std::string& text, std::int64_t number) {
  append_number(text, DType::int64, reinterpret_cast<const std::byte*>(&number));
}

void write_mtx(const chunkio::Dataset& dataset, const cli::AtomicFolder& folder,
               cli::Progress& progress) {
  const chunkio::DatasetInfo& info = dataset.info();
  const DType dtype = info.leading.dtype;
  const std::size_t value_bytes = size_of(dtype);
  const bool real = dtype == DType::float32 || dtype == DType::float64;
  TextFile out(folder.create(matrix_file(MatrixFormat::mtx)));
  out.text() = std::string("%%MatrixMarket matrix coordinate ") + (real ? "real" : "integer") +
               " general\n" + std::to_string(dataset.size()) + " " +
               std::to_string(info.sparse->columns) + " " +
               std::to_string(info.sparse->num_entries) + "\n";
  for_each_rows(dataset, [&](std::int64_t first, std::span<const std::int64_t> begins) {
    std::int64_t entry = begins.front();
    std::size_t row = 0;
    for_each_entries(dataset, begins.front(), begins.back(), Parts::both,
                     [&](auto columns, auto values) {
                       for (std::size_t i = 0; i < columns.size(); ++i, ++entry) {
                         while (begins[row + 1] <= entry) ++row;
                         std::string& text = out.text();
                         append_count(text, first + static_cast<std::int64_t>(row) + 1);
                         text += ' ';
                         append_count(text, columns[i] + 1);
                         text += ' ';
                         append_number(text, dtype, values.data() + i * value_bytes);
                         text += '\n';
                         out.flush_if_full();
                       }
                       // Of the two readings of .npz.
                       progress.add(2 * std::ssize(columns));
                     });
  });
  out.close();
}

/// Calls take(number, name) for all; those without names are numbered.
template <class Take>
void for_each_name(const chunkio::Dataset& dataset, MatrixAxis axis, const Take& take) {
  const chunkio::SparseInfo& sparse = *dataset.info().sparse;
  const bool rows = axis == MatrixAxis::rows;
  std::int64_t number = 0;
  if (!(rows ? sparse.row_names : sparse.column_names).empty()) {
    dataset.read_names(axis, [&](std::string_view name) { take(number++, name); });
    return;
  }
  const std::int64_t count = rows ? dataset.size() : sparse.columns;
  for (; number < count; ++number) take(number, std::string_view(std::to_string(number)));
}

}  // namespace

std::vector<std::string> exported_files(MatrixFormat format) {
  return {matrix_file(format), kRowTable, kColumnTable};
}

std::vector<std::string> export_matrix(const chunkio::Dataset& dataset, MatrixFormat format,
                                       const cli::AtomicFolder& folder, cli::Progress& progress) {
  if (format == MatrixFormat::npz) {
    write_npz(dataset, folder, progress);
  } else {
    write_mtx(dataset, folder, progress);
  }
  const SampleTable table(dataset, "name");
  TextFile rows(folder.create(kRowTable));
  rows.text() = table.header();
  for_each_name(dataset, MatrixAxis::rows, [&](std::int64_t row, std::string_view name) {
    table.append(rows.text(), row, name);
    rows.flush_if_full();
  });
  rows.close();
  TextFile columns(folder.create(kColumnTable));
  columns.text() = "name\n";
  for_each_name(dataset, MatrixAxis::columns, [&](std::int64_t, std::string_view name) {
    columns.text() += csv_field(name) + "\n";
    columns.flush_if_full();
  });
  columns.close();
  return table.left_out();
}

}  // namespace h5pack
