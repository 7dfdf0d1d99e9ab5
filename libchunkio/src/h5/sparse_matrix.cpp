#include "h5/sparse_matrix.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>
#include <utility>

#include <hdf5.h>

#include "base/sparse_layout.hpp"
#include "h5/attributes.hpp"
#include "h5/dataset_impl.hpp"
#include "h5/element_type.hpp"
#include "h5/error_stack.hpp"
#include "h5/read_rows.hpp"
#include "h5/schema.hpp"

namespace chunkio::h5 {
namespace {

using sparse::kData;
using sparse::kIndices;
using sparse::kIndptr;
using sparse::kShape;
constexpr const char* kMembers[] = {kData, kIndices, kIndptr, kShape};

/// The path inside the group.
std::string member(const std::string& group, const char* name) {
  return group.empty() ? name : group + "/" + name;
}

const DatasetSummary* find(const FileContents& contents, const std::string& name) {
  const auto found = std::find_if(contents.datasets.begin(), contents.datasets.end(),
                                  [&](const auto& dataset) { return dataset.name == name; });
  return found == contents.datasets.end() ? nullptr : &*found;
}

std::string display_name(const std::string& group) {
  return group.empty() ? "the matrix" : printable(group);
}

bool is_integer(const std::optional<DType>& dtype) { return dtype && h5::is_integer(*dtype); }

/// Rows and columns, as whoever wrote the group says.
struct MatrixSize {
  std::int64_t rows = 0, columns = 0;
};

/// Whether it is stored by columns.
bool is_by_columns(const AttributeReader& attributes) {
  for (const char* name : {sparse::kEncodingType, "h5sparse_format"}) {
    std::optional<std::string> kind;
    try {
      kind = attributes.text(name);
    } catch (const Error&) {
      continue;  // no text: another program's attribute
    }
    if (kind && kind->starts_with("csc")) return true;
  }
  return false;
}

/// \param matrix  its rows are known; learns whether it is transposed.
MatrixSize size_of_matrix(const Dataset::Impl& file, const std::string& group,
                          const FileContents& contents, bool columns_as_rows,
                          SparseMatrix& matrix) {
  const std::string what = file.info.path + ": " + display_name(group);
  const GroupId object(
      check_id(H5Gopen2(file.file().get(), group.empty() ? "/" : group.c_str(), H5P_DEFAULT),
               "open the group of", file.info.path));
  const AttributeReader attributes(object.get(), display_name(group), file.info.path);
  const std::int64_t rows = matrix.rows;
  if (is_by_columns(attributes)) {
    if (!columns_as_rows) {
      throw Error(ErrorCode::unsupported,
                  what +
                      " is stored by columns (CSC), so its rows cannot be read one by one; write "
                      "it by rows first: h5pack csr FILE -o NEW.h5ad");
    }
    matrix.transposed = true;
  }
  std::optional<std::vector<std::int64_t>> shape;
  for (const char* name : {kShape, "h5sparse_shape"}) {
    if (!shape) shape = attributes.numbers<std::int64_t>(name, 2);
  }
  if (shape) {
    if (matrix.transposed) std::swap((*shape)[0], (*shape)[1]);
    return {(*shape)[0], (*shape)[1]};
  }

  const DatasetSummary* const dataset = find(contents, member(group, kShape));
  if (dataset == nullptr || dataset->shape != Shape{2} || !is_integer(dataset->dtype)) {
    throw Error(ErrorCode::unsupported,
                what +
                    " looks like a sparse matrix, and nothing says how many columns it has: "
                    "write its `shape` as an attribute of two integers");
  }
  const auto array = open_array(file, dataset->name, Shape{2}, DType::int64);
  std::array<std::int64_t, 2> values{};
  read_rows(*array, 0, 2, std::as_writable_bytes(std::span(values)), file.info.path);
  // Files of 10x Genomics count features first, and store the features of one cell after another.
  if (values[0] != rows && values[1] == rows) std::swap(values[0], values[1]);
  return {values[0], values[1]};
}

std::shared_ptr<const StoredArray> open_member(const Dataset::Impl& file,
                                               const DatasetSummary& dataset, DType dtype) {
  return open_array(file, dataset.name, *dataset.shape, dtype);
}

template <class Index>
bool all_columns(std::span<const std::byte> bytes, std::int64_t columns) {
  const std::span indices(reinterpret_cast<const Index*>(bytes.data()),
                          bytes.size() / sizeof(Index));
  using Unsigned = std::make_unsigned_t<Index>;
  // Negative ones are the largest. One pass that the compiler makes a vector loop of.
  Unsigned largest = 0;
  for (const Index index : indices) largest = std::max(largest, static_cast<Unsigned>(index));
  return indices.empty() ||
         static_cast<std::uint64_t>(largest) < static_cast<std::uint64_t>(columns);
}

}  // namespace

bool is_member(const std::string& group, const std::string& dataset) {
  return std::any_of(std::begin(kMembers), std::end(kMembers),
                     [&](const char* name) { return dataset == member(group, name); });
}

std::vector<std::string> sparse_groups(const FileContents& contents) {
  std::vector<std::string> groups;
  for (const DatasetSummary& dataset : contents.datasets) {
    const std::string& name = dataset.name;
    const std::size_t slash = name.rfind('/');
    if (name.substr(slash == std::string::npos ? 0 : slash + 1) != kIndptr) continue;
    const std::string group = slash == std::string::npos ? "" : name.substr(0, slash);
    const auto is_list = [&](const char* of) {
      const DatasetSummary* const one = find(contents, member(group, of));
      return one != nullptr && one->shape && one->shape->rank() == 1;
    };
    if (is_list(kIndptr) && is_list(kIndices) && is_list(kData)) groups.push_back(group);
  }
  return groups;
}

std::shared_ptr<const SparseMatrix> open_sparse(const Dataset::Impl& file, const std::string& group,
                                                const FileContents& contents,
                                                bool columns_as_rows) {
  const std::string& path = file.info.path;
  const std::string what = path + ": " + display_name(group);
  const DatasetSummary& data = *find(contents, member(group, kData));
  const DatasetSummary& indices = *find(contents, member(group, kIndices));
  const DatasetSummary& offsets = *find(contents, member(group, kIndptr));
  for (const DatasetSummary* one : {&data, &indices, &offsets}) {
    if (!one->refusal.empty()) throw refused(path, one->describe());
  }
  if (!data.dtype || !is_integer(indices.dtype) || !is_integer(offsets.dtype)) {
    throw Error(ErrorCode::unsupported, what +
                                            " is no sparse matrix of numbers: its data must be "
                                            "numbers, its indices and indptr integers");
  }
  const auto corrupt = [&](const std::string& why) {
    return Error(ErrorCode::corrupt_data, what + " is damaged: " + why + "; write it again");
  };
  auto matrix = std::make_shared<SparseMatrix>();
  matrix->name = group;
  matrix->rows = (*offsets.shape)[0] - 1;
  matrix->num_entries = (*data.shape)[0];
  if (matrix->rows < 1) {
    throw Error(ErrorCode::corrupt_data, what + " has no rows; there is nothing to read");
  }
  // The offsets of all are read.
  if (!may_have_rows(file, matrix->rows)) {
    throw corrupt(std::to_string(matrix->rows) + " rows are more than the file has bytes");
  }
  if (matrix->num_entries < 1) {
    throw Error(ErrorCode::corrupt_data, what + " holds no entries; there is nothing to read");
  }
  const MatrixSize size = size_of_matrix(file, group, contents, columns_as_rows, *matrix);
  if (size.rows != matrix->rows) {
    throw corrupt("its shape says " + std::to_string(size.rows) + " rows, its indptr " +
                  std::to_string(matrix->rows));
  }
  matrix->columns = size.columns;
  if (matrix->columns < 1 || matrix->columns > kMaxColumns || matrix->rows > kMaxSamples ||
      matrix->num_entries > kMaxValues) {
    throw corrupt("no matrix has " + std::to_string(matrix->rows) + " x " +
                  std::to_string(matrix->columns) + " numbers, " +
                  std::to_string(matrix->num_entries) + " of them stored");
  }
  if ((*indices.shape)[0] != matrix->num_entries) {
    throw corrupt(std::to_string(matrix->num_entries) + " entries have " +
                  std::to_string((*indices.shape)[0]) + " columns (indices)");
  }
  matrix->values = open_member(file, data, *data.dtype);
  matrix->indices =
      open_member(file, indices, indices.dtype == DType::int32 ? DType::int32 : DType::int64);
  matrix->offsets = open_member(file, offsets, DType::int64);
  std::array<std::int64_t, 2> ends{};
  const auto read_one = [&](std::int64_t row, std::int64_t& value) {
    read_rows(*matrix->offsets, row, 1, std::as_writable_bytes(std::span(&value, 1)), path);
  };
  read_one(0, ends[0]);
  read_one(matrix->rows, ends[1]);
  if (ends[0] != 0 || ends[1] != matrix->num_entries) {
    throw corrupt("its indptr goes from " + std::to_string(ends[0]) + " to " +
                  std::to_string(ends[1]) + ", not from 0 to its " +
                  std::to_string(matrix->num_entries) + " entries");
  }
  return matrix;
}

std::string SparseMatrix::describe_rows(std::int64_t first, std::int64_t last,
                                        const std::string& path) const {
  return "rows " + std::to_string(first) + " to " + std::to_string(last) + " of " +
         display_name(name) + " in " + path;
}

void SparseMatrix::check_offsets(std::int64_t first, std::span<const std::int64_t> of_rows,
                                 const std::string& path) const {
  for (std::size_t i = 0; i + 1 < of_rows.size(); ++i) {
    if (0 <= of_rows[i] && of_rows[i] <= of_rows[i + 1] && of_rows[i + 1] <= num_entries) continue;
    throw Error(ErrorCode::corrupt_data,
                path + ": " + display_name(name) + " is damaged: row " +
                    std::to_string(first + static_cast<std::int64_t>(i)) + " lies at entries " +
                    std::to_string(of_rows[i]) + " to " + std::to_string(of_rows[i + 1]) + " of " +
                    std::to_string(num_entries) + " (indptr); write it again");
  }
}

void SparseMatrix::check_indices(std::span<const std::byte> bytes, std::int64_t first,
                                 std::int64_t last, const std::string& path) const {
  const bool sound = index_dtype() == DType::int32 ? all_columns<std::int32_t>(bytes, columns)
                                                   : all_columns<std::int64_t>(bytes, columns);
  if (sound) return;
  throw Error(ErrorCode::corrupt_data, describe_rows(first, last, path) +
                                           " are damaged: a column is none of the " +
                                           std::to_string(columns) + " (indices); write it again");
}

void read_row_begins(const SparseMatrix& matrix, std::int64_t first, std::span<std::int64_t> out,
                     const std::string& path) {
  read_rows(*matrix.offsets, first, std::ssize(out), std::as_writable_bytes(out), path);
  matrix.check_offsets(first, out, path);
}

void read_entries(const SparseMatrix& matrix, std::int64_t first, std::span<std::int64_t> columns,
                  std::span<std::byte> values, const std::string& path) {
  if (!values.empty()) {
    read_rows(*matrix.values, first, std::ssize(values) / matrix.values->row_bytes, values, path);
  }
  if (columns.empty()) return;
  const std::int64_t count = std::ssize(columns);
  const auto bytes = std::as_writable_bytes(columns);
  if (matrix.index_dtype() == DType::int64) {
    read_rows(*matrix.indices, first, count, bytes, path);
  } else {
    // Into the second half, from which they are widened.
    const auto narrow = bytes.last(bytes.size() / 2);
    read_rows(*matrix.indices, first, count, narrow, path);
    for (std::size_t i = 0; i < columns.size(); ++i) {
      std::int32_t column = 0;
      std::memcpy(&column, narrow.data() + i * sizeof(column), sizeof(column));
      columns[i] = column;
    }
  }
  for (const std::int64_t column : columns) {
    if (column >= 0 && column < matrix.columns) continue;
    throw Error(ErrorCode::corrupt_data,
                path + ": " + display_name(matrix.name) + " is damaged: entries " +
                    std::to_string(first) + " to " + std::to_string(first + count - 1) +
                    " have column " + std::to_string(column) + " of " +
                    std::to_string(matrix.columns) + " (indices); write it again");
  }
}

SparseRows read_sparse(std::span<const SparsePart> parts, const SparseInfo& info, DType dtype) {
  // Of all rows, as the batch counts them; and of each part, as its file does.
  std::vector<std::int64_t> offsets = {0};
  std::vector<std::int64_t> first_entries;
  for (const SparsePart& part : parts) {
    std::vector<std::int64_t> own(static_cast<std::size_t>(part.count) + 1);
    read_row_begins(*part.matrix, part.first, own, part.path);
    first_entries.push_back(own.front());
    const std::int64_t shift = offsets.back() - own.front();
    for (std::size_t i = 1; i < own.size(); ++i) offsets.push_back(own[i] + shift);
  }
  const std::int64_t num_rows = std::ssize(offsets) - 1;
  const base::SparseLayout layout = [&] {
    try {
      return base::SparseLayout(num_rows, offsets.back(), info.columns, dtype, info.index_dtype);
    } catch (const Error& error) {
      throw error.with_message(parts.front().path + ": " + error.what());
    }
  }();
  const auto memory = std::make_shared<std::byte[]>(layout.bytes());
  layout.write_offsets(offsets, memory.get());
  std::span<std::byte> indices = layout.indices(memory.get());
  std::span<std::byte> values = layout.values(memory.get());
  std::size_t row = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto& [matrix, first, count, path] = parts[i];
    const std::int64_t begin = offsets[row];
    row += static_cast<std::size_t>(count);
    const std::int64_t num_entries = offsets[row] - begin;
    if (num_entries == 0) continue;
    const auto take = [&](std::span<std::byte>& all, const StoredArray& array) {
      const auto part = all.first(static_cast<std::size_t>(num_entries * array.row_bytes));
      all = all.subspan(part.size());
      read_rows(array, first_entries[i], num_entries, part, path);
      return part;
    };
    matrix->check_indices(take(indices, *matrix->indices), first, first + count - 1, path);
    take(values, *matrix->values);
  }
  return {.tensor = layout.tensor(memory.get()), .memory = memory};
}

}  // namespace chunkio::h5
