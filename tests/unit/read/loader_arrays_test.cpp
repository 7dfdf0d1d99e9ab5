// Loaders of files that other numbers than images lead.
#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <chunkio/loader.hpp>

#include "support/errors.hpp"
#include "support/h5_files.hpp"
#include "support/row_lists.hpp"
#include "support/scratch.hpp"

namespace chunkio {
namespace {

using test::all_rows;
using test::expect_error;
using test::Rows;
using test::sorted;

template <class Number>
bool are_numbers_of(std::span<const std::int64_t> rows, const Tensor& view) {
  const auto values = view.values<Number>();
  const std::size_t elements = values.size() / std::max<std::size_t>(rows.size(), 1);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::int64_t row = rows[i / elements];
    if (values[i] != static_cast<Number>(1024 * row + static_cast<std::int64_t>(i % elements))) {
      return false;
    }
  }
  return true;
}

/// Rows of a batch, all of whose arrays must be theirs as the script of foreign files wrote them.
Rows rows_of(const Batch& batch) {
  const std::span<const std::int64_t> rows = batch.sample_ids();
  const Tensor x = batch.leading();
  switch (x.dtype()) {
    case DType::float32:
      EXPECT_TRUE(are_numbers_of<float>(rows, x));
      break;
    case DType::float64:
      EXPECT_TRUE(are_numbers_of<double>(rows, x));
      break;
    case DType::int32:
      EXPECT_TRUE(are_numbers_of<std::int32_t>(rows, x));
      break;
    default:
      EXPECT_TRUE(are_numbers_of<std::int16_t>(rows, x));
  }
  const auto labels = batch.labels().values<std::int64_t>();
  const auto ids = batch["id"].values<std::int64_t>();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(labels[i], rows[i] % 7);
    EXPECT_EQ(ids[i], rows[i] + 100);
  }
  return {rows.begin(), rows.end()};
}

Rows rows_of(Loader& loader, std::int64_t epoch) {
  Rows rows;
  for (const Batch& batch : loader.epoch(epoch)) {
    const Rows more = rows_of(batch);
    rows.insert(rows.end(), more.begin(), more.end());
  }
  return rows;
}

class LoaderArraysTest : public ::testing::Test {
 protected:
  [[nodiscard]] Dataset open(const std::string& name) const {
    return Dataset::open(test::h5py_file(folder_, name));
  }
  [[nodiscard]] static LoaderOptions options() {
    return {
        .batch_size = 6, .seed = 3, .fields = {"id"}, .order = {.window_bytes = 3 * 7 * 784 * 4}};
  }

  test::ScratchFolder folder_;
};

TEST_F(LoaderArraysTest, EverySourceDeliversThem) {
  using enum SourceKind;
  struct Case {
    const char* name;
    std::vector<SourceKind> sources;
  };
  const std::vector<Case> cases = {{"vectors", {mapped, scatter, hdf5, automatic}},
                                   {"vectors_chunked", {mapped, scatter, hdf5, automatic}},
                                   {"vectors_latest", {mapped, scatter, hdf5, automatic}},
                                   {"vectors_cut", {direct, hdf5, automatic}},
                                   {"vectors_deflate", {direct, hdf5, automatic}},
                                   {"vectors_lzf", {direct, hdf5, automatic}},
                                   {"vectors_big_endian", {hdf5, automatic}},
                                   {"vectors_scaleoffset", {hdf5, automatic}}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const Dataset dataset = open(c.name);
    Rows first;
    for (const SourceKind source : c.sources) {
      for (const Resident resident : {Resident::none, Resident::host}) {
        for (const bool direct_io : {false, true}) {
          SCOPED_TRACE(to_string(source));
          LoaderOptions wanted = options();
          wanted.io.source = source;
          wanted.memory.resident = resident;
          wanted.io.direct_io = direct_io && source != mapped && source != hdf5;
          Loader loader(dataset, wanted);
          const Rows rows = rows_of(loader, 0);
          if (first.empty()) first = rows;
          EXPECT_EQ(rows, first) << "the order is not that of the source";
          EXPECT_EQ(sorted(rows), all_rows(40));
          EXPECT_EQ(loader.epoch_stats(0).bytes_delivered, 40 * dataset.info().sample_bytes());
          EXPECT_EQ(sorted(rows_of(loader, 1)), all_rows(40));
        }
      }
    }
    EXPECT_NE(first, all_rows(40)) << "they are shuffled";
  }
}

TEST_F(LoaderArraysTest, AllOrdersRanksAndSelectionsHoldForThem) {
  const Dataset dataset = open("vectors_chunked");
  for (const OrderMode mode :
       {OrderMode::chunk_shuffled, OrderMode::sequential, OrderMode::random}) {
    Rows all;
    for (std::int64_t rank = 0; rank < 4; ++rank) {
      LoaderOptions wanted = options();
      wanted.order.mode = mode;
      wanted.ranks.rank = rank;
      wanted.ranks.world_size = 4;
      Loader loader(dataset, wanted);
      const Rows rows = rows_of(loader, 2);
      all.insert(all.end(), rows.begin(), rows.end());
    }
    EXPECT_EQ(sorted(all), all_rows(40));
  }
  LoaderOptions wanted = options();
  wanted.rows = RowSelection({{3, 9}, {20, 31}});
  wanted.only_labels = {1, 2};
  Loader loader(dataset, wanted);
  EXPECT_EQ(sorted(rows_of(loader, 0)), (Rows{8, 22, 23, 29, 30}));
}

TEST_F(LoaderArraysTest, AStateNamesWhatLeads) {
  const std::string path = test::h5py_file(folder_, "vectors_chunked");
  Loader loader(Dataset::open(path), options());
  loader.start_epoch(1);
  Rows expected;
  for (int i = 0; i < 3; ++i) static_cast<void>(loader.next());
  const std::string state = loader.state();
  while (const auto batch = loader.next()) {
    const Rows more = rows_of(*batch);
    expected.insert(expected.end(), more.begin(), more.end());
  }
  Loader resumed = Loader::resume(Dataset::open(path), options(), state);
  EXPECT_EQ(rows_of(resumed, 1), expected);
  LoaderOptions without = options();
  without.fields.clear();
  expect_error(ErrorCode::invalid_argument, {path, "another file"}, [&] {
    (void)Loader::resume(Dataset::open(path, {.images = "id"}), without, state);
  });
}

TEST_F(LoaderArraysTest, ARowMayBeOneNumber) {
  const Dataset dataset =
      Dataset::open(test::h5py_file(folder_, "vectors_one_axis"), {.images = "x"});
  Loader loader(dataset, options());
  EXPECT_EQ(sorted(rows_of(loader, 0)), all_rows(40));
  loader.start_epoch(0);
  const auto batch = loader.next();
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->leading().shape(), Shape{6});
}

TEST_F(LoaderArraysTest, WhatLeadsIsDeliveredOnceAlsoIfItIsNamedAsAField) {
  LoaderOptions wanted = options();
  wanted.fields = {"x", "id"};
  const Dataset dataset = open("vectors");
  Loader loader(dataset, wanted);
  EXPECT_EQ(sorted(rows_of(loader, 0)), all_rows(40));
  EXPECT_EQ(loader.memory_bytes(), Loader(dataset, options()).memory_bytes());
}

TEST_F(LoaderArraysTest, WithoutDigestsThereIsNothingToVerify) {
  LoaderOptions wanted = options();
  wanted.io.verify = Verify::always;
  expect_error(ErrorCode::unsupported, {"no digests", "verify = off"},
               [&] { const Loader loader(open("vectors"), wanted); });
}

}  // namespace
}  // namespace chunkio
