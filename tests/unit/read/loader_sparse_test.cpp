// Loaders of files that a CSR matrix leads: rows of different length, in the order of all others.
#include <algorithm>
#include <cstdint>
#include <fstream>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <chunkio/dataset_writer.hpp>
#include <chunkio/dlpack.hpp>
#include <chunkio/loader.hpp>

#include "sources/sparse_source.hpp"
#include "support/errors.hpp"
#include "support/row_lists.hpp"
#include "support/scratch.hpp"
#include "support/sparse_files.hpp"

namespace chunkio {
namespace {

using test::all_rows;
using test::expect_error;
using test::kSparseRows;
using test::Rows;
using test::sorted;
using test::sparse_file;

/// The rows of a batch, which must be theirs, as must those of the field.
Rows rows_of(const Batch& batch, const std::string& field = "obs/weight") {
  const SparseTensor sparse = batch.sparse();
  EXPECT_EQ(sparse.rows(), batch.size());
  const auto rows = batch.sample_ids();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    test::expect_sparse_row(sparse, static_cast<std::int64_t>(i), rows[i]);
    if (field.empty()) continue;
    EXPECT_EQ(batch[field].values<float>()[i], static_cast<float>(rows[i]) / 2);
  }
  for (const Tensor& tensor : {sparse.indptr, sparse.indices, sparse.values}) {
    EXPECT_TRUE(tensor.empty() || tensor.shape().num_elements() == 0 || batch.contains(tensor));
  }
  return {rows.begin(), rows.end()};
}

Rows rows_of(Loader& loader, std::int64_t epoch, const std::string& field = "obs/weight") {
  Rows rows;
  for (const Batch& batch : loader.epoch(epoch)) {
    const Rows more = rows_of(batch, field);
    rows.insert(rows.end(), more.begin(), more.end());
  }
  return rows;
}

class LoaderSparseTest : public ::testing::Test {
 protected:
  [[nodiscard]] Dataset open(const std::string& name) const {
    return Dataset::open(sparse_file(folder_, name));
  }
  /// Windows of some row groups.
  [[nodiscard]] static LoaderOptions options() {
    return {.batch_size = 16,
            .seed = 3,
            .fields = {"obs/weight"},
            .order = {.window_bytes = 2048},
            .io = {.num_threads = 2}};
  }

  test::ScratchFolder folder_;
};

TEST_F(LoaderSparseTest, EveryStorageIsDelivered) {
  std::optional<Rows> first;
  const std::int64_t row_bytes = open("anndata").info().sample_bytes();
  for (const char* name : {"anndata", "chunked", "latest", "gzip", "lzf", "scaleoffset",
                           "big_endian", "unsigned", "layer"}) {
    SCOPED_TRACE(name);
    const Dataset dataset = open(name);
    for (const bool direct_io : {false, true}) {
      LoaderOptions wanted = options();
      wanted.io.direct_io = direct_io;
      Loader loader(dataset, wanted);
      EXPECT_GT(loader.row_groups().num_groups(), 3);
      const Rows rows = rows_of(loader, 0);
      EXPECT_EQ(sorted(rows), all_rows(kSparseRows));
      EXPECT_NE(rows, all_rows(kSparseRows));
      EXPECT_NE(rows_of(loader, 1), rows);
      // Rows of the same size are grouped alike.
      if (dataset.info().sample_bytes() != row_bytes) continue;
      if (!first) first = rows;
      EXPECT_EQ(rows, *first);
    }
  }
}

TEST_F(LoaderSparseTest, TheOrderIsThatOfEpochOrder) {
  const Dataset dataset = open("anndata");
  for (const OrderMode mode :
       {OrderMode::chunk_shuffled, OrderMode::random, OrderMode::sequential}) {
    for (const std::int64_t lanes : {1, 4}) {
      SCOPED_TRACE(std::string(to_string(mode)) + " " + std::to_string(lanes));
      LoaderOptions wanted = options();
      wanted.order.mode = mode;
      wanted.order.lanes = lanes;
      Loader loader(dataset, wanted);
      const EpochOrder order(loader.row_groups(),
                             {.mode = mode,
                              .seed = 3,
                              .batch_size = 16,
                              .window_groups = loader.window_groups(),
                              .lanes = lanes},
                             5);
      Rows expected;
      for (std::int64_t step = 0; step < order.num_steps(); ++step) {
        const Rows batch = order.batch(step);
        expected.insert(expected.end(), batch.begin(), batch.end());
      }
      EXPECT_EQ(rows_of(loader, 5), expected);
    }
  }
}

TEST_F(LoaderSparseTest, RanksShareTheRows) {
  const Dataset dataset = open("chunked");
  Rows rows;
  for (const std::int64_t rank : {0, 1}) {
    LoaderOptions wanted = options();
    wanted.order.uneven = Uneven::exact;
    wanted.ranks = {.rank = rank, .world_size = 2};
    Loader loader(dataset, wanted);
    const Rows more = rows_of(loader, 0);
    rows.insert(rows.end(), more.begin(), more.end());
  }
  EXPECT_EQ(sorted(rows), all_rows(kSparseRows));
}

TEST_F(LoaderSparseTest, KeptOnTheHost) {
  for (const bool some : {false, true}) {
    for (const OrderMode mode : {OrderMode::chunk_shuffled, OrderMode::random}) {
      LoaderOptions wanted = options();
      wanted.memory.resident = Resident::host;
      wanted.order.mode = mode;
      Rows expected = all_rows(kSparseRows);
      if (some) {
        wanted.rows = RowSelection({{10, 30}, {100, 180}});
        std::erase_if(expected, [](std::int64_t row) {
          return row < 10 || (30 <= row && row < 100) || 180 <= row;
        });
      }
      Loader loader(open("gzip"), wanted);
      std::vector<Batch> held;
      for (const std::int64_t epoch : {0, 1, 2}) {
        // What was left off stays, too.
        loader.start_epoch(epoch);
        held.push_back(*loader.next());
        EXPECT_EQ(sorted(rows_of(loader, epoch)), expected);
      }
      EXPECT_EQ(loader.epoch_stats(2).bytes_read, 0);
      for (const Batch& batch : held) rows_of(batch);
    }
  }
  LoaderOptions little = options();
  little.memory.resident = Resident::host;
  little.memory.budget = 20'000;
  expect_error(ErrorCode::out_of_resources, {"resident", "memory_budget"},
               [&] { Loader(open("anndata"), little); });
}

TEST_F(LoaderSparseTest, SelectedRowsAloneAreDelivered) {
  const Dataset dataset = open("gzip");
  LoaderOptions wanted = options();
  const Rows rows = {3, 17, 100, 101, 102, 200, 229};
  wanted.rows = RowSelection::of(rows);
  Loader loader(dataset, wanted);
  EXPECT_EQ(sorted(rows_of(loader, 0)), rows);
}

TEST_F(LoaderSparseTest, GoesOnInTheMiddleOfAnEpoch) {
  const Dataset dataset = open("gzip");
  Loader whole(dataset, options());
  std::vector<Rows> batches;
  for (const Batch& batch : whole.epoch(2)) batches.push_back(rows_of(batch));
  for (const std::size_t taken : {std::size_t{1}, std::size_t{7}, batches.size() - 1}) {
    Loader loader(dataset, options());
    loader.start_epoch(2);
    for (std::size_t i = 0; i < taken; ++i) static_cast<void>(loader.next());
    Loader resumed = Loader::resume(dataset, options(), loader.state());
    std::size_t step = taken;
    for (const Batch& batch : resumed.epoch(2)) EXPECT_EQ(rows_of(batch), batches.at(step++));
    EXPECT_EQ(step, batches.size());
    // Rows that were read ahead are given up, and read again.
    for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
      loader.start_epoch(epoch);
      EXPECT_EQ(rows_of(*loader.next()).size(), 16);
    }
  }
}

TEST_F(LoaderSparseTest, HeldBatchesStay) {
  const Dataset dataset = open("anndata");
  for (const WhenHeld when_held : {WhenHeld::wait, WhenHeld::copy}) {
    LoaderOptions wanted = options();
    wanted.memory.when_held = when_held;
    wanted.memory.max_held = when_held == WhenHeld::wait ? 32 : 2;
    std::vector<Batch> held;
    {
      Loader loader(dataset, wanted);
      for (const Batch& batch : loader.epoch(0)) held.push_back(batch);
    }
    Rows rows;
    for (const Batch& batch : held) {
      const Rows more = rows_of(batch);
      rows.insert(rows.end(), more.begin(), more.end());
    }
    EXPECT_EQ(sorted(rows), all_rows(kSparseRows));
    EXPECT_EQ(held.back().copied(), when_held == WhenHeld::copy);
  }
}

TEST_F(LoaderSparseTest, SeveralFilesAreOne) {
  sparse_file(folder_, "first_part", "part-00000-of-00002.h5");
  sparse_file(folder_, "second_part", "part-00001-of-00002.h5");
  Loader loader(Dataset::open(folder_.file("part-*-of-00002.h5")), options());
  EXPECT_EQ(sorted(rows_of(loader, 0)), all_rows(kSparseRows));
}

TEST_F(LoaderSparseTest, ABatchHasNoDenseTensorOfIt) {
  Loader loader(open("anndata"), options());
  loader.start_epoch(0);
  const Batch batch = *loader.next();
  expect_error(ErrorCode::unsupported, {"X is a sparse matrix", "sparse()"},
               [&] { static_cast<void>(batch.leading()); });
  expect_error(ErrorCode::unsupported, {"sparse()"}, [&] { static_cast<void>(batch["X"]); });
  expect_error(ErrorCode::unsupported, {"no images", "sparse matrix X", "sparse()"},
               [&] { static_cast<void>(batch.images()); });
  const auto exported = to_dlpack(batch, batch.sparse().values);
  EXPECT_EQ(exported->dl_tensor.shape[0], batch.sparse().values.shape()[0]);

  Loader vectors(Dataset::open(test::h5py_file(folder_, "vectors")), {.batch_size = 4});
  vectors.start_epoch(0);
  expect_error(ErrorCode::unsupported, {"no sparse matrix", "x float32"},
               [&] { static_cast<void>(vectors.next()->sparse()); });
}

TEST_F(LoaderSparseTest, DamagedRowsAreAnErrorOrSkipped) {
  for (const char* name : {"column_too_large", "column_negative"}) {
    SCOPED_TRACE(name);
    const Dataset dataset = open(name);
    LoaderOptions wanted = options();
    expect_error(ErrorCode::corrupt_data, {"of X", "(indices)", name}, [&] {
      Loader loader(dataset, wanted);
      for (const Batch& batch : loader.epoch(0)) static_cast<void>(batch);
    });
    wanted.io.on_error = OnError::skip;
    Loader loader(dataset, wanted);
    const Rows rows = sorted(rows_of(loader, 0));
    ASSERT_EQ(loader.skipped().size(), 1);
    const SkippedRows skipped = loader.skipped().front();
    EXPECT_EQ(skipped.num_rows, 1);
    EXPECT_EQ(std::ssize(rows) + skipped.num_rows, kSparseRows);
    for (const std::int64_t row : rows) {
      EXPECT_TRUE(row < skipped.first_row || row >= skipped.first_row + skipped.num_rows);
    }
    EXPECT_EQ(sorted(rows_of(loader, 1)), rows);
  }
  // Offsets are looked at before anything is read.
  for (const char* name : {"decreasing", "beyond"}) {
    const Dataset dataset = open(name);
    expect_error(ErrorCode::corrupt_data, {"row 99", "(indptr)"},
                 [&] { Loader(dataset, options()); });
  }
}

TEST_F(LoaderSparseTest, RowsAreComparedWithTheirDigests) {
  const std::string path = folder_.file("written.h5ad");
  constexpr std::int64_t kWritten = 300;
  {
    SparseWriter writer(
        path, {.row_lengths = Rows(static_cast<std::size_t>(kWritten), 3), .num_columns = 1000});
    for (std::int64_t row = 0; row < kWritten; ++row) {
      const Rows columns = {row, row + 1, row + 2};
      const std::vector<float> values(3, static_cast<float>(row));
      writer.write_rows(row, 1, columns, std::as_bytes(std::span(values)));
    }
    writer.close();
  }
  LoaderOptions wanted{.batch_size = 16, .seed = 3, .order = {.window_bytes = 2048}};
  wanted.io.verify = Verify::always;
  const auto rows_of_epoch = [&](Loader& loader) {
    std::int64_t rows = 0;
    for (const Batch& batch : loader.epoch(0)) rows += batch.size();
    return rows;
  };
  {
    Loader loader(Dataset::open(path), wanted);
    EXPECT_EQ(rows_of_epoch(loader), kWritten);
  }
  // A value of row 123.
  std::vector<std::uint8_t> bytes = test::read_bytes(path);
  const std::vector<float> values(3, 123);
  const auto* const wanted_bytes = reinterpret_cast<const std::uint8_t*>(values.data());
  const auto at = std::search(bytes.begin(), bytes.end(), wanted_bytes, wanted_bytes + 12);
  ASSERT_NE(at, bytes.end());
  *at ^= 1;
  test::write_bytes(path, bytes);
  Loader strict(Dataset::open(path), wanted);
  expect_error(ErrorCode::digest_mismatch, {"row 123", path}, [&] { rows_of_epoch(strict); });
  wanted.io.on_error = OnError::skip;
  Loader loader(Dataset::open(path), wanted);
  EXPECT_EQ(rows_of_epoch(loader), kWritten - 1);
  ASSERT_EQ(loader.skipped().size(), 1);
  EXPECT_EQ(loader.skipped().front().first_row, 123);
  EXPECT_EQ(loader.skipped().front().num_rows, 1);
}

TEST_F(LoaderSparseTest, MemoryFollowsTheLongestRows) {
  const Dataset dataset = open("long_row");
  LoaderOptions wanted{.batch_size = 32, .seed = 1};
  wanted.memory.budget = std::int64_t{256} << 20;
  Loader loader(dataset, wanted);
  // Its row group and a batch, each of 2^20 values and columns, at least.
  constexpr std::int64_t kRowBytes = std::int64_t{8} << 20;
  EXPECT_GT(loader.memory_bytes(), 2 * kRowBytes);
  EXPECT_LE(loader.memory_bytes(), wanted.memory.budget);
  std::int64_t values = 0;
  std::int64_t rows = 0;
  for (const Batch& batch : loader.epoch(0)) {
    values += batch.sparse().values.shape()[0];
    rows += batch.size();
  }
  EXPECT_EQ(rows, 2000);
  EXPECT_EQ(values, (1 << 20) + 3 * 1999);
  EXPECT_GE(loader.stats().bytes_delivered, values * 8);

  wanted.memory.budget = std::int64_t{8} << 20;
  expect_error(ErrorCode::out_of_resources, {"memory_budget", "too small"},
               [&] { Loader(dataset, wanted); });
}

TEST(SizeCountsTest, TheSumOfTheLargestIsHardlyMoreThanTheirs) {
  sources::SizeCounts counts;
  Rows values = {0, 1, 127, 128, 129, std::int64_t{1} << 62};
  std::uint64_t state = 1;
  for (int i = 0; i < 3000; ++i) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    values.push_back(static_cast<std::int64_t>((state >> 33) >> (i % 30)));
  }
  for (const std::int64_t value : values) counts.add(value);
  std::sort(values.rbegin(), values.rend());
  std::int64_t exact = 0;
  for (std::size_t count = 0; count < values.size(); ++count) {
    const std::int64_t sum = counts.largest_sum(static_cast<std::int64_t>(count));
    ASSERT_GE(sum, exact) << count;
    ASSERT_LE(static_cast<double>(sum), static_cast<double>(exact) * (1 + 1.0 / 64)) << count;
    exact += values[count];
  }
  EXPECT_EQ(counts.largest_sum(5000), exact);
}

TEST_F(LoaderSparseTest, WhatCannotBeIsRefused) {
  const Dataset dataset = open("anndata");
  LoaderOptions wanted = options();
  wanted.io.verify = Verify::first_epoch;
  expect_error(ErrorCode::unsupported, {"verify", "no digests"}, [&] { Loader(dataset, wanted); });
  wanted = options();
  wanted.io.source = SourceKind::mapped;
  expect_error(ErrorCode::invalid_argument, {"mapped", "source"}, [&] { Loader(dataset, wanted); });
}

}  // namespace
}  // namespace chunkio
