// CSR matrices in files of AnnData, 10x Genomics and others: found, read, and refused if damaged.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <chunkio/dataset.hpp>

#include "support/errors.hpp"
#include "support/scratch.hpp"
#include "support/sparse_files.hpp"

namespace chunkio {
namespace {

using test::expect_error;
using test::kSparseColumns;
using test::kSparseRows;
using test::sparse_file;

class SparseMatrixTest : public ::testing::Test {
 protected:
  Dataset open(const std::string& name, const OpenOptions& options = {}) const {
    return Dataset::open(sparse_file(folder_, name), options);
  }
  static void expect_rows(const Dataset& dataset, std::int64_t first, std::int64_t count) {
    const SparseRows rows = dataset.read_sparse(first, count);
    ASSERT_EQ(rows.tensor.rows(), count);
    for (std::int64_t i = 0; i < count; ++i) test::expect_sparse_row(rows.tensor, i, first + i);
  }

  test::ScratchFolder folder_;
};

TEST_F(SparseMatrixTest, IsFoundAndRead) {
  struct Case {
    const char* name;
    const char* group;
    DType value;
    DType index;
  };
  const std::vector<Case> cases = {{"anndata", "X", DType::float32, DType::int32},
                                   {"chunked", "X", DType::float32, DType::int32},
                                   {"latest", "X", DType::float32, DType::int32},
                                   {"gzip", "X", DType::float32, DType::int32},
                                   {"lzf", "X", DType::float32, DType::int32},
                                   {"scaleoffset", "X", DType::int32, DType::int32},
                                   {"big_endian", "X", DType::float64, DType::int64},
                                   {"unsigned", "X", DType::uint16, DType::int64},
                                   {"layer", "layers/counts", DType::int64, DType::int64},
                                   {"genomics", "matrix", DType::int32, DType::int64},
                                   {"root_group", "", DType::float32, DType::int32},
                                   {"old_anndata", "X", DType::float32, DType::int32}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const Dataset dataset = open(c.name);
    const DatasetInfo& info = dataset.info();
    EXPECT_EQ(info.leading.name, c.group);
    EXPECT_EQ(info.leading.dtype, c.value);
    EXPECT_EQ(info.leading.row_shape, Shape{kSparseColumns});
    EXPECT_EQ(info.num_samples, kSparseRows);
    EXPECT_FALSE(info.has_images());
    ASSERT_TRUE(info.sparse);
    EXPECT_EQ(info.sparse->columns, kSparseColumns);
    EXPECT_EQ(info.sparse->index_dtype, c.index);
    const auto bytes = static_cast<std::int64_t>(size_of(c.value) + size_of(c.index));
    EXPECT_EQ(info.sample_bytes(), info.sparse->num_entries * bytes / kSparseRows);
    expect_rows(dataset, 0, kSparseRows);
    expect_rows(dataset, 10, 20);
    expect_rows(dataset, 0, 1);  // has no values
    expect_rows(dataset, kSparseRows, 0);
  }
}

TEST_F(SparseMatrixTest, ColumnsOfTheObservationsAreFields) {
  const Dataset dataset = open("anndata");
  ASSERT_EQ(dataset.info().fields.size(), 2);
  EXPECT_EQ(dataset.info().fields[0].name, "obs/label");
  EXPECT_EQ(dataset.info().fields[1].name, "obs/weight");
  EXPECT_EQ(dataset.info().left_out, (std::vector<std::string>{"obs/_index string [230]"}));
  EXPECT_TRUE(open("root_group").info().labels);
}

TEST_F(SparseMatrixTest, OneOfSeveralIsNamed) {
  EXPECT_EQ(open("several_with_x").info().leading.name, "X");
  expect_error(ErrorCode::unsupported, {"layers/counts, layers/scaled", "option images"},
               [&] { open("several"); });
  const Dataset dataset = open("several", {.images = "/layers/scaled"});
  EXPECT_EQ(dataset.info().leading.name, "layers/scaled");
  expect_rows(dataset, 0, kSparseRows);
  expect_error(ErrorCode::invalid_argument, {"sparse matrix", "leave out the option layout"},
               [&] { open("anndata", {.layout = Layout::nhwc}); });
  expect_error(ErrorCode::invalid_argument, {"sparse matrix", "leave out the option decode"},
               [&] { open("anndata", {.decode = DecodeOptions{}}); });
}

TEST_F(SparseMatrixTest, SeveralFilesAreOne) {
  sparse_file(folder_, "first_part", "part-00000-of-00002.h5");
  sparse_file(folder_, "second_part", "part-00001-of-00002.h5");
  const Dataset dataset = Dataset::open(folder_.file("part-*-of-00002.h5"));
  EXPECT_EQ(dataset.info().num_samples, kSparseRows);
  EXPECT_EQ(dataset.info().sparse->num_entries, open("anndata").info().sparse->num_entries);
  expect_rows(dataset, 0, kSparseRows);
  expect_rows(dataset, 90, 20);
}

std::vector<std::string> names_of(const Dataset& dataset, MatrixAxis axis) {
  std::vector<std::string> names;
  dataset.read_names(axis, [&](std::string_view name) { names.emplace_back(name); });
  return names;
}

/// All entries, by pieces, are those of the rows.
void expect_entries(const Dataset& dataset) {
  std::vector<std::int64_t> begins(static_cast<std::size_t>(dataset.size()) + 1);
  dataset.read_row_begins(0, begins);
  ASSERT_EQ(begins.back(), dataset.info().sparse->num_entries);
  std::vector<std::int64_t> columns;
  std::vector<float> values;
  for (std::int64_t at = 0; at < begins.back(); at += 97) {
    std::vector<std::int64_t> some(
        static_cast<std::size_t>(std::min<std::int64_t>(97, begins.back() - at)));
    std::vector<float> numbers(some.size());
    dataset.read_entries(at, some, {});
    columns.insert(columns.end(), some.begin(), some.end());
    dataset.read_entries(at, some, std::as_writable_bytes(std::span(numbers)));
    values.insert(values.end(), numbers.begin(), numbers.end());
  }
  for (std::int64_t row = 0; row < dataset.size(); ++row) {
    const std::vector<std::int64_t> expected = test::sparse_columns(row);
    const auto begin = static_cast<std::size_t>(begins[static_cast<std::size_t>(row)]);
    ASSERT_EQ(begins[static_cast<std::size_t>(row) + 1] - begins[static_cast<std::size_t>(row)],
              std::ssize(expected));
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(columns[begin + i], expected[i]);
      ASSERT_EQ(values[begin + i], static_cast<float>(test::sparse_value(row, expected[i])));
    }
  }
}

TEST_F(SparseMatrixTest, EntriesComeInPieces) {
  for (const char* name : {"anndata", "gzip", "lzf"}) {
    SCOPED_TRACE(name);
    expect_entries(open(name));
  }
  sparse_file(folder_, "first_part", "part-00000-of-00002.h5");
  sparse_file(folder_, "second_part", "part-00001-of-00002.h5");
  const Dataset parts = Dataset::open(folder_.file("part-*-of-00002.h5"));
  expect_entries(parts);
  std::vector<std::int64_t> begins(11);
  parts.read_row_begins(95, begins);
  std::vector<std::int64_t> all(static_cast<std::size_t>(kSparseRows) + 1);
  parts.read_row_begins(0, all);
  EXPECT_EQ(begins, std::vector<std::int64_t>(all.begin() + 95, all.begin() + 106));
  std::vector<std::int64_t> one(1);
  expect_error(ErrorCode::invalid_argument, {"no entries"},
               [&] { parts.read_entries(all.back(), one, {}); });
  std::vector<std::byte> few(3);
  expect_error(ErrorCode::invalid_argument, {"4 bytes", "has 3"},
               [&] { parts.read_entries(0, one, few); });
  expect_error(ErrorCode::corrupt_data, {"column 50 of 50"}, [&] {
    const Dataset damaged = open("column_too_large");
    std::vector<std::int64_t> columns(static_cast<std::size_t>(damaged.info().sparse->num_entries));
    damaged.read_entries(0, columns, {});
  });
  expect_error(ErrorCode::corrupt_data, {"row 99"},
               [&] { open("decreasing").read_row_begins(0, all); });
}

TEST_F(SparseMatrixTest, RowsAndColumnsHaveNames) {
  const Dataset dataset = open("anndata");
  EXPECT_EQ(dataset.info().sparse->row_names, "obs/_index");
  EXPECT_EQ(dataset.info().sparse->column_names, "");
  const std::vector<std::string> names = names_of(dataset, MatrixAxis::rows);
  ASSERT_EQ(names.size(), static_cast<std::size_t>(kSparseRows));
  EXPECT_EQ(names.front(), "cell 0");
  EXPECT_EQ(names.back(), "cell 229");
  EXPECT_TRUE(names_of(dataset, MatrixAxis::columns).empty());
  EXPECT_EQ(names_of(open("user_block"), MatrixAxis::rows), names);
  const Dataset genomics = open("genomics");
  EXPECT_EQ(genomics.info().sparse->row_names, "matrix/barcodes");
  EXPECT_EQ(genomics.info().sparse->column_names, "matrix/features/id");
  EXPECT_EQ(names_of(genomics, MatrixAxis::columns),
            std::vector<std::string>(static_cast<std::size_t>(kSparseColumns), "ENSG1"));
  sparse_file(folder_, "first_part", "part-00000-of-00002.h5");
  sparse_file(folder_, "second_part", "part-00001-of-00002.h5");
  EXPECT_EQ(names_of(Dataset::open(folder_.file("part-*-of-00002.h5")), MatrixAxis::rows), names);
  expect_error(ErrorCode::unsupported, {"no sparse matrix"}, [&] {
    names_of(Dataset::open(test::h5py_file(folder_, "vectors")), MatrixAxis::rows);
  });
}

TEST_F(SparseMatrixTest, ColumnsMayBeTakenAsRows) {
  expect_error(ErrorCode::unsupported, {"stored by columns"}, [&] { open("by_columns"); });
  const Dataset dataset = open("by_columns", {.columns_as_rows = true});
  EXPECT_TRUE(dataset.info().sparse->transposed);
  EXPECT_EQ(dataset.size(), kSparseRows);
  EXPECT_EQ(dataset.info().sparse->columns, kSparseColumns);
  expect_rows(dataset, 0, kSparseRows);
  expect_entries(dataset);
  EXPECT_EQ(names_of(dataset, MatrixAxis::rows).back(), "cell 229");
  EXPECT_EQ(names_of(dataset, MatrixAxis::columns).back(), "gene 49");
  // Of other files it says nothing.
  EXPECT_FALSE(open("anndata", {.columns_as_rows = true}).info().sparse->transposed);
}

TEST_F(SparseMatrixTest, WhatIsNoRowIsRefused) {
  const Dataset dataset = open("anndata");
  for (const auto& [first, count] :
       {std::pair<std::int64_t, std::int64_t>{-1, 1}, {0, -1}, {0, 231}, {231, 0}}) {
    expect_error(ErrorCode::invalid_argument, {"anndata.h5", "of 230"},
                 [&] { static_cast<void>(dataset.read_sparse(first, count)); });
  }
  std::vector<std::byte> bytes(200);
  expect_error(ErrorCode::unsupported, {"X is a sparse matrix", "read_sparse()"},
               [&] { dataset.read_field("X", 0, 1, bytes); });
  expect_error(ErrorCode::unsupported, {"no sparse matrix", "read_field()"}, [&] {
    static_cast<void>(Dataset::open(test::h5py_file(folder_, "vectors")).read_sparse(0, 1));
  });
}

TEST_F(SparseMatrixTest, DamageIsOneClearError) {
  struct Case {
    const char* name;
    ErrorCode code;
    std::vector<std::string> words;
  };
  using enum ErrorCode;
  const std::vector<Case> cases = {
      {"columns_first", unsupported, {"X is stored by columns (CSC)", "h5pack csr"}},
      {"without_shape", unsupported, {"how many columns", "`shape`"}},
      {"bad_shape", corrupt_data, {"X is damaged", "231 rows", "230"}},
      {"no_columns", corrupt_data, {"230 x 0"}},
      {"bad_start", corrupt_data, {"indptr goes from 1 to"}},
      {"bad_end", corrupt_data, {"to 1000000000"}},
      {"fewer_indices", corrupt_data, {"columns (indices)"}}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    std::vector<std::string> words = c.words;
    words.push_back(std::string(c.name) + ".h5");
    expect_error(c.code, words, [&] { open(c.name); });
  }
  for (const char* name : {"decreasing", "beyond"}) {
    expect_error(corrupt_data, {"X is damaged: row 99 lies at entries", "(indptr)"},
                 [&] { static_cast<void>(open(name).read_sparse(90, 20)); });
    expect_rows(open(name), 0, 99);
  }
  for (const char* name : {"column_too_large", "column_negative"}) {
    expect_error(corrupt_data, {"rows 0 to 229 of X", "none of the 50 (indices)"},
                 [&] { static_cast<void>(open(name).read_sparse(0, kSparseRows)); });
  }
}

}  // namespace
}  // namespace chunkio
