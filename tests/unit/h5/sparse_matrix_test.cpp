// CSR matrices in files of AnnData, 10x Genomics and others: found, read, and refused if damaged.
#include <cstdint>
#include <string>
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
    EXPECT_EQ(info.sample_bytes(), info.sparse->num_values * bytes / kSparseRows);
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
}

TEST_F(SparseMatrixTest, SeveralFilesAreOne) {
  sparse_file(folder_, "first_part", "part-00000-of-00002.h5");
  sparse_file(folder_, "second_part", "part-00001-of-00002.h5");
  const Dataset dataset = Dataset::open(folder_.file("part-*-of-00002.h5"));
  EXPECT_EQ(dataset.info().num_samples, kSparseRows);
  EXPECT_EQ(dataset.info().sparse->num_values, open("anndata").info().sparse->num_values);
  expect_rows(dataset, 0, kSparseRows);
  expect_rows(dataset, 90, 20);
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
      {"columns_first", unsupported, {"X is stored by columns (CSC)", "tocsr()"}},
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
    expect_error(corrupt_data, {"X is damaged: row 99 lies at values", "(indptr)"},
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
