// SparseWriter: what lands in the file, what is refused, and what is left by writers that end
// early.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <numeric>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <hdf5.h>

#include <chunkio/dataset_writer.hpp>

#include "base/digest.hpp"
#include "h5/attributes.hpp"
#include "h5/element_type.hpp"
#include "h5/handle.hpp"
#include "h5/library.hpp"
#include "support/errors.hpp"
#include "support/scratch.hpp"

namespace chunkio {
namespace {

using test::expect_error;

template <class T>
FieldData field(const std::string& name, const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {{name, dtype_of<T>(), Shape{}}, {bytes.begin(), bytes.end()}, {}};
}

/// A matrix in memory.
struct Matrix {
  std::vector<std::int64_t> lengths = {};
  std::vector<std::int64_t> columns = {};
  std::vector<float> values = {};
  std::int64_t num_columns = 0;

  [[nodiscard]] SparseSpec spec() const {
    return {.row_lengths = lengths, .num_columns = num_columns};
  }
};

/// Rows of 0 to 40 entries. \param num_columns  at least 1000.
Matrix pattern(std::int64_t num_rows, std::int64_t num_columns) {
  Matrix matrix{.num_columns = num_columns};
  for (std::int64_t row = 0; row < num_rows; ++row) {
    matrix.lengths.push_back(row * 7 % 41);
    for (std::int64_t i = 0; i < matrix.lengths.back(); ++i) {
      matrix.columns.push_back((row + 23 * i) % 11 + 23 * i);
      matrix.values.push_back(static_cast<float>(row) + 0.5F * static_cast<float>(i));
    }
  }
  if (!matrix.columns.empty()) {
    // The last column that there is.
    std::size_t last = matrix.columns.size() - 1;
    matrix.columns[last] = num_columns - 1;
  }
  return matrix;
}

/// Writes rows [first, first + count).
void write_rows(SparseWriter& writer, const Matrix& matrix, std::int64_t first,
                std::int64_t count) {
  const auto begin = matrix.lengths.begin() + first;
  const auto skipped =
      static_cast<std::size_t>(std::accumulate(matrix.lengths.begin(), begin, std::int64_t{0}));
  const auto entries =
      static_cast<std::size_t>(std::accumulate(begin, begin + count, std::int64_t{0}));
  writer.write_rows(first, count, std::span(matrix.columns).subspan(skipped, entries),
                    std::as_bytes(std::span(matrix.values).subspan(skipped, entries)));
}

template <class T>
std::vector<T> stored(const std::string& path, const std::string& name) {
  const auto guard = h5::Library::lock();
  const h5::FileId file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
  const h5::DatasetId dataset(H5Dopen2(file.get(), name.c_str(), H5P_DEFAULT));
  EXPECT_TRUE(dataset) << name;
  const h5::SpaceId space(H5Dget_space(dataset.get()));
  std::vector<T> values(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space.get())));
  EXPECT_GE(H5Dread(dataset.get(), h5::memory_type(dtype_of<T>()), H5S_ALL, H5S_ALL, H5P_DEFAULT,
                    values.data()),
            0);
  return values;
}

/// The padded names of a table.
std::vector<std::string> names(const std::string& path, const std::string& name) {
  const auto guard = h5::Library::lock();
  const h5::FileId file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
  const h5::DatasetId dataset(H5Dopen2(file.get(), name.c_str(), H5P_DEFAULT));
  const h5::TypeId type(H5Dget_type(dataset.get()));
  const h5::SpaceId space(H5Dget_space(dataset.get()));
  const std::size_t width = H5Tget_size(type.get());
  const auto count = static_cast<std::size_t>(H5Sget_simple_extent_npoints(space.get()));
  std::vector<char> text(width * count);
  H5Dread(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, text.data());
  std::vector<std::string> found;
  for (std::size_t i = 0; i < count; ++i) {
    found.emplace_back(text.data() + i * width, strnlen(text.data() + i * width, width));
  }
  return found;
}

class SparseWriterTest : public ::testing::Test {
 protected:
  void write(const Matrix& matrix, const PublishOptions& options = {}) const {
    SparseWriter writer(path_, matrix.spec(), options);
    write_rows(writer, matrix, 0, writer.num_rows());
    writer.close();
  }

  template <class Index>
  void expect_holds(const Matrix& matrix) const {
    const auto indices = stored<Index>(path_, "X/indices");
    EXPECT_TRUE(
        std::equal(indices.begin(), indices.end(), matrix.columns.begin(), matrix.columns.end()));
    const auto data = stored<float>(path_, "X/data");
    EXPECT_EQ(data, matrix.values);
    const auto indptr = stored<std::int64_t>(path_, "X/indptr");
    const auto digests = stored<std::uint64_t>(path_, "obs/sample_digests");
    ASSERT_EQ(indptr.size(), matrix.lengths.size() + 1);
    ASSERT_EQ(digests.size(), matrix.lengths.size());
    EXPECT_EQ(indptr.front(), 0);
    for (std::size_t row = 0; row < matrix.lengths.size(); ++row) {
      ASSERT_EQ(indptr[row + 1] - indptr[row], matrix.lengths[row]);
      const auto first = static_cast<std::size_t>(indptr[row]);
      const auto length = static_cast<std::size_t>(matrix.lengths[row]);
      const auto columns = std::as_bytes(std::span(indices).subspan(first, length));
      const auto values = std::as_bytes(std::span(data).subspan(first, length));
      ASSERT_EQ(digests[row], XXH3_64bits_withSeed(values.data(), values.size(),
                                                   XXH3_64bits(columns.data(), columns.size())));
    }
    EXPECT_EQ(folder_.names(), std::vector<std::string>{"out.h5ad"});
  }

  const test::ScratchFolder folder_;
  const std::string path_ = folder_.file("out.h5ad");
};

TEST_F(SparseWriterTest, RowsOfAllLengthsAreThere) {
  const Matrix matrix = pattern(500, 1000);
  write(matrix);
  expect_holds<std::int32_t>(matrix);
}

TEST_F(SparseWriterTest, ManyColumnsHaveWideNumbers) {
  // Two on either side of where int32 ends; so many have no names, either.
  for (const std::int64_t columns : {std::int64_t{1} << 31, (std::int64_t{1} << 31) - 1}) {
    const Matrix matrix = pattern(50, columns);
    write(matrix, {.overwrite = true});
    if (columns == std::int64_t{1} << 31) {
      expect_holds<std::int64_t>(matrix);
    } else {
      expect_holds<std::int32_t>(matrix);
    }
    const auto guard = h5::Library::lock();
    const h5::FileId file(H5Fopen(path_.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
    EXPECT_EQ(H5Lexists(file.get(), "var", H5P_DEFAULT), 0);
    const h5::DatasetId indices(H5Dopen2(file.get(), "X/indices", H5P_DEFAULT));
    const h5::TypeId type(H5Dget_type(indices.get()));
    EXPECT_EQ(H5Tget_size(type.get()), columns == std::int64_t{1} << 31 ? 8U : 4U);
  }
}

TEST_F(SparseWriterTest, NumbersOfAFieldMayStandForTexts) {
  const Matrix matrix = pattern(4, 1000);
  SparseSpec spec = matrix.spec();
  spec.fields = {field<std::int8_t>("kind", {1, -1, 0, 1}),
                 field<std::int64_t>("batch", {0, 0, 0, 0}),
                 field<std::int16_t>("none", {-1, -1, -1, -1})};
  spec.categories = {{"kind", {"", "J\xC3\xB6rg"}}, {"none", {}}};
  SparseWriter writer(path_, spec);
  write_rows(writer, matrix, 0, writer.num_rows());
  writer.close();
  EXPECT_EQ(stored<std::int8_t>(path_, "obs/kind/codes"), (std::vector<std::int8_t>{1, -1, 0, 1}));
  const Dataset dataset = Dataset::open(path_);
  EXPECT_EQ(dataset.categories("obs/kind/codes"), spec.categories["kind"]);
  EXPECT_EQ(dataset.categories("obs/none/codes"), std::vector<std::string>());
  EXPECT_EQ(dataset.categories("obs/batch"), std::nullopt);
  expect_error(ErrorCode::not_found, {"obs/kind", path_},
               [&] { static_cast<void>(dataset.categories("obs/kind")); });
  EXPECT_EQ(dataset.info().left_out,
            (std::vector<std::string>{"obs/_index string [4]", "var/_index string [1000]"}));
  const auto guard = h5::Library::lock();
  const h5::FileId file(H5Fopen(path_.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
  const h5::GroupId obs(H5Gopen2(file.get(), "obs", H5P_DEFAULT));
  EXPECT_EQ(*h5::AttributeReader(obs.get(), "obs", path_).texts("column-order"),
            (std::vector<std::string>{"kind", "batch", "none", "sample_digests"}));
  const h5::GroupId kind(H5Gopen2(file.get(), "obs/kind", H5P_DEFAULT));
  const h5::AttributeReader about(kind.get(), "obs/kind", path_);
  EXPECT_EQ(about.text("encoding-type"), "categorical");
  EXPECT_EQ(about.numbers<std::int64_t>("ordered", 1)->front(), 0);
}

TEST_F(SparseWriterTest, NamesFieldsAndAttributesAreThere) {
  const std::array<std::string, 2> rows = {"Ann", "J\xC3\xB6rg"};
  const std::array<std::string, 3> columns = {"", "b", "a long one"};
  SparseSpec spec = pattern(2, 1000).spec();
  spec.num_columns = 3;
  spec.row_lengths = {0, 2};
  spec.dtype = DType::uint16;
  spec.row_name = [&](std::int64_t row) -> std::string_view {
    return rows[static_cast<std::size_t>(row)];
  };
  spec.column_name = [&](std::int64_t column) -> std::string_view {
    return columns[static_cast<std::size_t>(column)];
  };
  spec.fields = {field<std::int64_t>("source_index", {1, 0}), field<double>("age", {30.5, 7})};
  spec.split = "train";
  spec.order = "shuffled";
  spec.seed = 17;
  spec.options_json = R"({"a": 1})";
  SparseWriter writer(path_, spec);
  const std::vector<std::int64_t> numbers = {0, 2};
  const std::vector<std::uint16_t> values = {7, 65535};
  writer.write_rows(1, 1, numbers, std::as_bytes(std::span(values)));
  writer.close();
  writer.close();
  EXPECT_EQ(stored<std::uint16_t>(path_, "X/data"), values);
  EXPECT_EQ(stored<double>(path_, "obs/age"), (std::vector<double>{30.5, 7}));
  EXPECT_EQ(stored<std::int64_t>(path_, "obs/source_index"), (std::vector<std::int64_t>{1, 0}));
  EXPECT_EQ(names(path_, "obs/_index"), (std::vector<std::string>{rows.begin(), rows.end()}));
  EXPECT_EQ(names(path_, "var/_index"), (std::vector<std::string>{columns.begin(), columns.end()}));
  const auto guard = h5::Library::lock();
  const h5::FileId file(H5Fopen(path_.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
  const h5::AttributeReader root(file.get(), "the root group", path_);
  EXPECT_EQ(root.text("encoding-type"), "anndata");
  EXPECT_EQ(root.numbers<std::int64_t>("chunkio_format", 1)->front(), 3);
  EXPECT_EQ(root.text("split"), "train");
  EXPECT_EQ(root.text("order"), "shuffled");
  EXPECT_EQ(root.numbers<std::uint64_t>("seed", 1)->front(), 17U);
  EXPECT_EQ(root.text("options"), R"({"a": 1})");
  const h5::GroupId matrix(H5Gopen2(file.get(), "X", H5P_DEFAULT));
  const h5::AttributeReader x(matrix.get(), "X", path_);
  EXPECT_EQ(x.text("encoding-type"), "csr_matrix");
  EXPECT_EQ(*x.numbers<std::int64_t>("shape", 2), (std::vector<std::int64_t>{2, 3}));
  const h5::GroupId obs(H5Gopen2(file.get(), "obs", H5P_DEFAULT));
  EXPECT_EQ(*h5::AttributeReader(obs.get(), "obs", path_).texts("column-order"),
            (std::vector<std::string>{"source_index", "age", "sample_digests"}));
}

TEST_F(SparseWriterTest, EntriesLieInOneRunEach) {
  write(pattern(3000, 2000));
  const auto guard = h5::Library::lock();
  const h5::FileId file(H5Fopen(path_.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
  for (const char* name : {"X/indices", "X/data", "X/indptr", "obs/sample_digests"}) {
    const h5::DatasetId dataset(H5Dopen2(file.get(), name, H5P_DEFAULT));
    const h5::ListId creation(H5Dget_create_plist(dataset.get()));
    EXPECT_EQ(H5Pget_layout(creation.get()), H5D_CONTIGUOUS) << name;
    EXPECT_EQ(H5Pget_nfilters(creation.get()), 0) << name;
    EXPECT_NE(H5Dget_offset(dataset.get()), HADDR_UNDEF) << name;
  }
  const h5::DatasetId data(H5Dopen2(file.get(), "X/data", H5P_DEFAULT));
  EXPECT_EQ(H5Dget_offset(data.get()) % 4096, 0U);
}

TEST_F(SparseWriterTest, ThreadsWriteAtOnce) {
  const Matrix matrix = pattern(4000, 1000);
  SparseWriter writer(path_, matrix.spec());
  {
    std::vector<std::jthread> threads;
    for (std::int64_t part = 0; part < 8; ++part) {
      threads.emplace_back([&, part] {
        // Neighbours in the file belong to different threads.
        for (std::int64_t first = part * 5; first < 4000; first += 40) {
          write_rows(writer, matrix, first, 5);
        }
      });
    }
  }
  writer.close();
  expect_holds<std::int32_t>(matrix);
}

TEST_F(SparseWriterTest, WrongRowsAreNamedAndNothingIsWritten) {
  const Matrix matrix{.lengths = {2, 0, 3},
                      .columns = {1, 4, 0, 2, 3},
                      .values = {1, 2, 3, 4, 5},
                      .num_columns = 5};
  SparseWriter writer(path_, matrix.spec());
  const auto refused = [&](std::vector<std::int64_t> columns, const std::string& what,
                           std::int64_t first = 0, std::int64_t count = 1,
                           std::vector<float> values = {1, 2}) {
    expect_error(ErrorCode::invalid_argument, {path_, what}, [&] {
      writer.write_rows(first, count, columns, std::as_bytes(std::span(values)));
    });
  };
  refused({1, 5}, "row 0 has column 5; columns are 0 to 4");
  refused({-1, 2}, "row 0 has column -1");
  refused({2, 2}, "columns of row 0 must be ascending, each once, but 2 follows 2");
  refused({3, 1}, "but 1 follows 3");
  refused({1}, "row 0 take 2 column numbers and 8 bytes of values, got 1 and 8");
  refused({1, 2}, "got 2 and 12", 0, 1, {1, 2, 3});
  refused({1, 2}, "rows 0 to 2 take 5 column numbers", 0, 3);
  refused({1, 2}, "are not among its 3", 3);
  refused({1, 2}, "are not among its 3", -1);
  refused({1, 2}, "are not among its 3", 0, 0);
  refused({1, 2}, "are not among its 3", 1, std::numeric_limits<std::int64_t>::max());
  expect_error(ErrorCode::invalid_argument, {"row 0 was not written"}, [&] { writer.close(); });
  write_rows(writer, matrix, 2, 1);
  // What it names before the row that it had is free again.
  expect_error(ErrorCode::invalid_argument, {"row 2 was written twice"},
               [&] { write_rows(writer, matrix, 0, 3); });
  write_rows(writer, matrix, 0, 2);
  writer.close();
  expect_holds<std::int32_t>(matrix);
  expect_error(ErrorCode::invalid_argument, {"after close"},
               [&] { write_rows(writer, matrix, 0, 1); });
}

TEST_F(SparseWriterTest, WrongSpecificationsAreRefused) {
  const auto refused = [&](const std::string& what, auto change) {
    SparseSpec spec = pattern(3, 1000).spec();
    change(spec);
    expect_error(ErrorCode::invalid_argument, {what}, [&] { SparseWriter(path_, spec); });
    EXPECT_TRUE(folder_.names().empty());
  };
  refused("at least one row", [](SparseSpec& spec) { spec.row_lengths.clear(); });
  refused("at least one row", [](SparseSpec& spec) { spec.num_columns = 0; });
  refused("row 1 cannot have -1 entries", [](SparseSpec& spec) { spec.row_lengths[1] = -1; });
  refused("row 1 cannot have 1001 entries", [](SparseSpec& spec) { spec.row_lengths[1] = 1001; });
  refused("a row takes at most 1 GiB",
          [](SparseSpec& spec) { spec.row_lengths[1] = spec.num_columns = std::int64_t{1} << 30; });
  refused("float16", [](SparseSpec& spec) { spec.dtype = DType::float16; });
  refused("order", [](SparseSpec& spec) { spec.order = "random"; });
  refused("shard 2 of 2 cannot hold 3 of 3 rows from row 0", [](SparseSpec& spec) {
    spec.shard = ShardInfo{.index = 2, .count = 2, .total_rows = 3, .set = "s"};
  });
  refused("cannot hold 3 of 4 rows from row 2", [](SparseSpec& spec) {
    spec.shard = ShardInfo{.index = 1, .count = 2, .first_row = 2, .total_rows = 4, .set = "s"};
  });
  refused("the name of column 0 contains a zero byte", [](SparseSpec& spec) {
    spec.column_name = [](std::int64_t) { return std::string_view("a\0b", 3); };
  });
  refused("is longer than 4096", [](SparseSpec& spec) {
    static const std::string kLong(5000, 'x');
    spec.row_name = [](std::int64_t) { return std::string_view(kLong); };
  });
  refused("16 bytes for 3 rows", [](SparseSpec& spec) {
    spec.fields = {field<std::int64_t>("source_index", {1, 0})};
  });
  refused("the name is taken", [](SparseSpec& spec) {
    spec.fields = {field<std::uint64_t>("sample_digests", {1, 2, 3})};
  });
  refused("no row has an entry", [](SparseSpec& spec) { spec.row_lengths = {0, 0, 0}; });
  refused("the name of row 0, 'caf\xE9', is not UTF-8", [](SparseSpec& spec) {
    spec.row_name = [](std::int64_t) { return std::string_view("caf\xE9"); };
  });
  const auto refused_categories = [&](const std::string& what, const FieldData& codes,
                                      const std::vector<std::string>& texts) {
    refused(what, [&](SparseSpec& spec) {
      spec.fields = {codes};
      spec.categories = {{"kind", texts}};
    });
  };
  const FieldData kind = field<std::int8_t>("kind", {0, -1, 1});
  refused_categories("the number 1; those of its 1 categories are -1 to 0", kind, {"a"});
  refused_categories("two categories of field 'kind' are alike", kind, {"a", "a"});
  refused_categories("category of field 'kind' 1, '\xFF', is not UTF-8", kind, {"a", "\xFF"});
  refused_categories("the number -2", field<std::int8_t>("kind", {0, -2, 1}), {"a", "b"});
  refused_categories("float", field<float>("kind", {0, 0, 1}), {"a", "b"});
  refused_categories("no field 'kind'", field<std::int8_t>("other", {0, 0, 1}), {"a", "b"});
  refused("no name that a column", [](SparseSpec& spec) {
    spec.fields = {field<std::uint64_t>("a/b", {1, 2, 3})};
  });
  refused("one number a row", [](SparseSpec& spec) {
    spec.fields = {field<std::int64_t>("box", {1, 2, 3})};
    spec.fields[0].info.row_shape = Shape{1};
  });
}

TEST_F(SparseWriterTest, WritersThatEndEarlyLeaveNothing) {
  {
    SparseWriter writer(path_, pattern(9, 1000).spec());
    EXPECT_EQ(folder_.names(), std::vector<std::string>{"out.h5ad.partial"});
  }
  EXPECT_TRUE(folder_.names().empty());
  const Matrix matrix = pattern(9, 1000);
  std::stop_source stop;
  SparseWriter writer(path_, matrix.spec(), {.stop = stop.get_token()});
  write_rows(writer, matrix, 0, 9);
  stop.request_stop();
  expect_error(ErrorCode::cancelled, {path_}, [&] { writer.close(); });
  EXPECT_TRUE(folder_.names().empty());
  expect_error(ErrorCode::invalid_argument, {"earlier close failed"}, [&] { writer.close(); });
}

TEST_F(SparseWriterTest, WhatIsInTheWayIsKept) {
  const Matrix matrix = pattern(9, 1000);
  test::write_bytes(path_, {'o', 'l', 'd'});
  expect_error(ErrorCode::output_exists, {"overwrite"}, [&] { write(matrix); });
  EXPECT_EQ(test::read_bytes(path_).size(), 3U);
  write(matrix, {.overwrite = true});
  expect_holds<std::int32_t>(matrix);
  std::filesystem::remove(path_);

  test::write_bytes(path_ + ".partial", {'x'});
  expect_error(ErrorCode::output_exists, {path_ + ".partial is left over"}, [&] { write(matrix); });
  EXPECT_EQ(test::read_bytes(path_ + ".partial").size(), 1U);
  write(matrix, {.overwrite = true});
  expect_holds<std::int32_t>(matrix);
  std::filesystem::remove(path_);

  SparseWriter writer(path_, matrix.spec());
  write_rows(writer, matrix, 0, 9);
  expect_error(ErrorCode::output_exists, {"in use"}, [&] { write(matrix, {.overwrite = true}); });
  test::write_bytes(path_, {'n', 'e', 'w'});
  expect_error(ErrorCode::output_exists, {path_}, [&] { writer.close(); });
  EXPECT_EQ(test::read_bytes(path_).size(), 3U);
}

TEST_F(SparseWriterTest, WhatTheDiskChangedIsNotPublished) {
  const Matrix matrix = pattern(300, 1000);
  for (const char* name : {"X/indices", "X/data", "X/indptr", "obs/_index", "var/_index"}) {
    SparseWriter writer(path_, matrix.spec());
    write_rows(writer, matrix, 0, 300);
    haddr_t offset = 0;
    {
      const auto guard = h5::Library::lock();
      const h5::FileId file(H5Fopen((path_ + ".partial").c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
      const h5::DatasetId dataset(H5Dopen2(file.get(), name, H5P_DEFAULT));
      offset = H5Dget_offset(dataset.get());
    }
    auto bytes = test::read_bytes(path_ + ".partial");
    {
      std::fstream file(path_ + ".partial", std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(static_cast<std::streamoff>(offset) + 5);
      file.put(static_cast<char>(bytes[offset + 5] ^ 1));
    }
    expect_error(ErrorCode::digest_mismatch, {path_}, [&] { writer.close(); });
    EXPECT_TRUE(folder_.names().empty());
  }
}

}  // namespace
}  // namespace chunkio
