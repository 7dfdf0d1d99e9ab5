/// What a Loader delivers beside plain images in order: large fields, some rows, checked or kept
/// chunks.
#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include <chunkio/loader.hpp>

#include "support/damage.hpp"
#include "support/delivered_rows.hpp"
#include "support/errors.hpp"
#include "support/h5_files.hpp"
#include "support/pixels.hpp"
#include "support/scratch.hpp"

namespace chunkio {
namespace {

using test::expect_error;

/// All rows of an epoch, ascending, each checked.
std::vector<std::int64_t> drain(Loader& loader, std::int64_t epoch = 0) {
  std::vector<std::int64_t> rows = test::delivered_rows(loader, epoch);
  std::sort(rows.begin(), rows.end());
  return rows;
}

// ---- Large fields ----

class LargeFieldsTest : public testing::TestWithParam<SourceKind> {
 protected:
  test::ScratchFolder folder_;
  Dataset dataset_ = Dataset::open(test::h5py_file(folder_, "many_masks"));
};

TEST_P(LargeFieldsTest, ComeWithTheirImages) {
  // The fields take more than an eighth of this budget, so they are not kept in memory.
  Loader loader(dataset_, {.batch_size = 30,
                           .seed = 3,
                           .fields = {"masks", "depth", "heat", "flow"},
                           .order = {.window_bytes = 64 << 10},
                           .memory = {.budget = 9 << 19, .prefetch_depth = 1, .max_held = 1},
                           .io = {.num_threads = 2, .source = GetParam()}});
  std::set<std::int64_t> seen;
  for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
    for (const Batch& batch : loader.epoch(epoch)) {
      ASSERT_EQ(batch["masks"].shape(), (Shape{batch.size(), 16, 12}));
      const auto masks = batch["masks"].values<std::uint16_t>();
      const auto depth = batch["depth"].values<float>();
      const auto heat = batch["heat"].values<std::int32_t>();
      const auto flow = batch["flow"].values<std::int16_t>();
      const auto labels = batch.labels().values<std::int64_t>();
      for (std::size_t i = 0; i < batch.sample_ids().size(); ++i) {
        const std::int64_t row = batch.sample_ids()[i];
        seen.insert(row);
        ASSERT_EQ(labels[i], row % 7);
        for (std::size_t p = 0; p < 16 * 12; ++p) {
          const auto place = static_cast<std::int64_t>(p);
          ASSERT_EQ(masks[i * 192 + p], row * 7 + place) << "row " << row;
          ASSERT_EQ(depth[i * 192 + p], static_cast<float>(row) + static_cast<float>(p) / 256);
          ASSERT_EQ(heat[i * 192 + p], row * 2 + place);
          ASSERT_EQ(flow[(i * 192 + p) * 2], row - place);
          ASSERT_EQ(flow[(i * 192 + p) * 2 + 1], row + place);
        }
      }
    }
  }
  EXPECT_EQ(seen.size(), 4000U);
  EXPECT_EQ(loader.epoch_stats(0).bytes_delivered, 4000 * 192 * (3 + 2 + 4 + 4 + 4));
}

INSTANTIATE_TEST_SUITE_P(Sources, LargeFieldsTest,
                         testing::Values(SourceKind::automatic, SourceKind::direct,
                                         SourceKind::hdf5),
                         [](const auto& source) { return std::string(to_string(source.param)); });

// ---- Some rows ----

class SomeRowsTest : public testing::Test {
 protected:
  test::ScratchFolder folder_;
  std::string path_ = test::h5py_file(folder_, "masks");
  Dataset dataset_ = Dataset::open(path_);
};

TEST_F(SomeRowsTest, RangesAndSingleRows) {
  Loader loader(
      dataset_,
      {.batch_size = 16, .rows = RowSelection({{10, 30}, {399, 400}}), .order = {.version = 1}});
  std::vector<std::int64_t> expected;
  for (std::int64_t row = 10; row < 30; ++row) expected.push_back(row);
  expected.push_back(399);
  EXPECT_EQ(loader.samples_per_epoch(), 21);
  for (std::int64_t epoch = 0; epoch < 3; ++epoch) EXPECT_EQ(drain(loader, epoch), expected);
  // Chunks without a wanted row are not touched.
  EXPECT_EQ(loader.epoch_stats(1).chunk_loads, 3);
}

TEST_F(SomeRowsTest, Labels) {
  Loader loader(dataset_, {.batch_size = 16, .only_labels = {2, 5, 2}});
  std::vector<std::int64_t> expected;
  for (std::int64_t row = 0; row < 400; ++row) {
    if (row % 7 == 2 || row % 7 == 5) expected.push_back(row);
  }
  EXPECT_EQ(drain(loader), expected);
}

TEST_F(SomeRowsTest, RowsAndLabels) {
  Loader loader(dataset_, {.batch_size = 16, .rows = RowSelection({{0, 20}}), .only_labels = {3}});
  EXPECT_EQ(drain(loader), (std::vector<std::int64_t>{3, 10, 17}));
}

TEST_F(SomeRowsTest, WhatCannotBeMetIsAnError) {
  const auto make = [&](LoaderOptions options) { const Loader loader(dataset_, options); };
  expect_error(ErrorCode::invalid_argument, {path_, "rows 0 to 399", "row 400"}, [&] {
    make({.rows = RowSelection({{390, 401}})});
  });
  expect_error(ErrorCode::invalid_argument, {path_, "label 9"}, [&] {
    make({.only_labels = {3, 9}});
  });
  expect_error(ErrorCode::invalid_argument, {path_, "none of the rows"}, [&] {
    make({.rows = RowSelection({{0, 2}}), .only_labels = {3}});
  });
  const std::string table = test::h5py_file(folder_, "attribute_table");
  expect_error(ErrorCode::unsupported, {table, "table of labels"},
               [&] { const Loader loader(Dataset::open(table), {.only_labels = {1}}); });
  const std::string unlabelled = test::h5py_file(folder_, "user_block");
  expect_error(ErrorCode::unsupported, {unlabelled, "no labels"},
               [&] { const Loader loader(Dataset::open(unlabelled), {.only_labels = {1}}); });
}

TEST_F(SomeRowsTest, AreKeptInMemoryAlone) {
  Loader loader(dataset_, {.batch_size = 16,
                           .rows = RowSelection({{10, 30}, {399, 400}}),
                           .memory = {.resident = Resident::host}});
  for (std::int64_t epoch = 0; epoch < 3; ++epoch) EXPECT_EQ(drain(loader, epoch).size(), 21U);
  EXPECT_GT(loader.epoch_stats(0).bytes_read, 0);
  EXPECT_EQ(loader.epoch_stats(2).bytes_read, 0);
  EXPECT_EQ(loader.epoch_stats(2).chunk_loads, 0);
}

TEST_F(SomeRowsTest, RanksReadUntilTheyHaveMetEveryRow) {
  // A rank of two meets about half of the 25 row groups in an epoch, and others in the next.
  constexpr std::int64_t kEpochs = 30;
  LoaderOptions options{.batch_size = 16,
                        .seed = 1,
                        .order = {.window_bytes = 4 * 16 * 16 * 12 * 3},
                        .ranks = {.world_size = 2},
                        .memory = {.resident = Resident::host},
                        .io = {.num_epochs = kEpochs}};
  for (options.ranks.rank = 0; options.ranks.rank < 2; ++options.ranks.rank) {
    Loader loader(dataset_, options);
    const std::int64_t groups = loader.row_groups().num_groups();
    for (std::int64_t epoch = 0; epoch < kEpochs; ++epoch) {
      EXPECT_EQ(drain(loader, epoch).size(), 200U);
      if (epoch > 1) continue;
      EXPECT_GT(loader.epoch_stats(epoch).chunk_loads, 0);
      EXPECT_LT(loader.epoch_stats(epoch).chunk_loads, groups);
    }
    EXPECT_EQ(loader.stats().chunk_loads, groups) << "each once";
    EXPECT_EQ(loader.epoch_stats(kEpochs - 1).chunk_loads, 0);
  }
}

TEST_F(SomeRowsTest, MoreThanTheBudgetCannotBeKept) {
  expect_error(ErrorCode::out_of_resources, {"resident = host", "400 rows", "memory_budget"}, [&] {
    const Loader loader(dataset_, {.batch_size = 16,
                                   .order = {.window_bytes = 16 << 10},
                                   .memory = {.budget = 200 << 10, .resident = Resident::host},
                                   .io = {.num_threads = 1}});
  });
}

// ---- Checked chunks ----

class VerifiedTest : public testing::TestWithParam<SourceKind> {
 protected:
  VerifiedTest() {
    const DatasetSpec spec = test::small_spec(40);
    DatasetWriter writer(path_, spec, {.chunk_samples = 8});
    test::write_pattern(writer, spec);
    writer.close();
    test::damage_image(path_, 19);
  }

  test::ScratchFolder folder_;
  std::string path_ = folder_.file("own.h5");
};

TEST_P(VerifiedTest, ADamagedChunkComesOutOfTheConsumersNextCall) {
  for (const Verify verify : {Verify::first_epoch, Verify::always}) {
    Loader loader(Dataset::open(path_),
                  {.batch_size = 4, .io = {.source = GetParam(), .verify = verify}});
    expect_error(ErrorCode::digest_mismatch, {path_, "chunk 2 (rows 16 to 23) of images"},
                 [&] { drain(loader); });
    // It stays an error, and the loader can be destroyed.
    expect_error(ErrorCode::digest_mismatch, {path_}, [&] { (void)loader.next(); });
  }
}

TEST_P(VerifiedTest, OrIsLeftOut) {
  Loader loader(
      Dataset::open(path_),
      {.batch_size = 4,
       .io = {.source = GetParam(), .verify = Verify::always, .on_error = OnError::skip}});
  for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
    const std::vector<std::int64_t> rows = drain(loader, epoch);
    EXPECT_EQ(rows.size(), 39U);
    EXPECT_FALSE(std::binary_search(rows.begin(), rows.end(), 19));
    EXPECT_EQ(loader.epoch_stats(epoch).skipped_images, 1);
    EXPECT_EQ(loader.epoch_stats(epoch).batches, loader.num_steps());
  }
  const std::vector<SkippedRows> skipped = loader.skipped();
  ASSERT_EQ(skipped.size(), 1U);
  EXPECT_EQ(skipped[0].first_row, 19);
  EXPECT_EQ(skipped[0].num_rows, 1);
  EXPECT_NE(skipped[0].reason.find("sample 19 does not match its stored digest"),
            std::string::npos);
}

TEST_P(VerifiedTest, WhatIsKeptWasCheckedBefore) {
  // Each chunk is read once, and the damaged sample stays skipped.
  Loader loader(Dataset::open(path_), {.batch_size = 4,
                                       .order = {.version = 1},
                                       .memory = {.resident = Resident::host},
                                       .io = {.source = GetParam(),
                                              .verify = Verify::always,
                                              .on_error = OnError::skip,
                                              .num_epochs = 3}});
  for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
    EXPECT_EQ(drain(loader, epoch).size(), 39U);
    EXPECT_EQ(loader.epoch_stats(epoch).skipped_images, 1);
    EXPECT_EQ(loader.epoch_stats(epoch).chunk_loads, epoch == 0 ? 5 : 0);
  }
}

TEST_P(VerifiedTest, WithoutVerificationNothingIsNoticed) {
  Loader loader(Dataset::open(path_), {.batch_size = 4, .io = {.source = GetParam()}});
  loader.start_epoch(0);
  std::int64_t images = 0;
  while (const auto batch = loader.next()) images += batch->size();
  EXPECT_EQ(images, 40);
}

INSTANTIATE_TEST_SUITE_P(Sources, VerifiedTest,
                         testing::Values(SourceKind::mapped, SourceKind::scatter,
                                         SourceKind::direct, SourceKind::hdf5),
                         [](const auto& source) { return std::string(to_string(source.param)); });

}  // namespace
}  // namespace chunkio
