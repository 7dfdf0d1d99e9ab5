// Datasets of several files: opened, read and verified as one.
#include "h5/shard_set.hpp"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <chunkio/verify.hpp>

#include "h5/dataset_impl.hpp"
#include "support/damage.hpp"
#include "support/errors.hpp"
#include "support/process_counts.hpp"
#include "support/shard_fixture.hpp"

namespace chunkio {
namespace {

namespace fs = std::filesystem;
using test::expect_error;
using test::kChunk;
using test::kUneven;
using test::kWhole;
using test::Rows;
using test::rows_of;
using test::ShardsTest;
using test::sum;

TEST_F(ShardsTest, AreOneDataset) {
  const Dataset dataset = Dataset::open(write(kUneven));
  const DatasetInfo& info = dataset.info();
  EXPECT_EQ(dataset.size(), sum(kUneven));
  EXPECT_EQ(info.stored.shape, (Shape{sum(kUneven), 5, 4, 3}));
  EXPECT_EQ(info.stored.chunk_shape, (Shape{kChunk, 5, 4, 3}));
  EXPECT_EQ(info.num_chunks, 3 + 1 + 4 + 2 + 1);
  EXPECT_EQ(info.digests_cover, (std::vector<std::string>{"images", "labels", "weights"}));
  EXPECT_EQ(info.class_names.size(), 10U);
  EXPECT_EQ(info.uuid.size(), 16U);
  EXPECT_FALSE(info.shard);
  ASSERT_EQ(info.shards.size(), kUneven.size());
  EXPECT_EQ(info.shards[2].first_row, 25);
  EXPECT_EQ(info.shards[2].num_samples, 27);
  EXPECT_EQ(info.shards[2].path, shard_path(scratch_.file("train.h5"), 2, 5));
  const auto third = Dataset::open(info.shards[2].path).info().shard;
  ASSERT_TRUE(third);
  EXPECT_EQ(*third, (ShardInfo{2, 5, 25, 67, "a set"}));
}

TEST_F(ShardsTest, RowsAreReadAcrossTheSeams) {
  const Dataset dataset = Dataset::open(write(kUneven));
  for (std::int64_t first = 0; first < dataset.size(); first += 3) {
    for (const std::int64_t count : {1, 6, 40}) {
      if (first + count > dataset.size()) continue;
      std::vector<std::byte> pixels(static_cast<std::size_t>(count * 60));
      dataset.read_images(first, count, pixels);
      std::vector<float> weights(static_cast<std::size_t>(2 * count));
      dataset.read_field("weights", first, count, std::as_writable_bytes(std::span(weights)));
      for (std::int64_t i = 0; i < count; ++i) {
        const auto expected = test::image(first + i, 60);
        EXPECT_TRUE(std::equal(expected.begin(), expected.end(), pixels.begin() + i * 60));
        EXPECT_EQ(weights[static_cast<std::size_t>(2 * i)], static_cast<float>(first + i));
      }
    }
  }
  std::vector<std::byte> pixels(60);
  expect_error(ErrorCode::invalid_argument, {"67 rows", "train-*-of-00005.h5"},
               [&] { dataset.read_images(67, 1, pixels); });
  expect_error(ErrorCode::invalid_argument, {"2 rows", "buffer has 60"},
               [&] { dataset.read_images(3, 2, pixels); });
}

TEST_F(ShardsTest, AreDeliveredAsTheOneFileTheyWouldBe) {
  const Dataset shards = Dataset::open(write(kWhole));
  test::PackedFile whole{.num_samples = sum(kWhole), .chunk_samples = kChunk};
  test::write_packed(scratch_.file("whole.h5"), whole);
  const Dataset one = Dataset::open(scratch_.file("whole.h5"));
  for (const OrderMode mode :
       {OrderMode::chunk_shuffled, OrderMode::sequential, OrderMode::random}) {
    LoaderOptions options = small();
    options.order.mode = mode;
    Loader expected(one, options);
    const Rows rows = rows_of(expected, 1);
    for (const SourceKind source : {SourceKind::automatic, SourceKind::mapped, SourceKind::scatter,
                                    SourceKind::direct, SourceKind::hdf5}) {
      for (const Verify verify : {Verify::off, Verify::first_epoch, Verify::always}) {
        options.io.source = source;
        options.io.verify = verify;
        Loader loader(shards, options);
        EXPECT_EQ(rows_of(loader, 1), rows) << to_string(source) << ", " << to_string(verify);
      }
    }
  }
}

TEST_F(ShardsTest, OfAnySizeAreLoadedChunkByChunkOnce) {
  const Dataset dataset = Dataset::open(write(kUneven));
  for (const SourceKind source :
       {SourceKind::mapped, SourceKind::scatter, SourceKind::direct, SourceKind::hdf5}) {
    for (const Resident resident : {Resident::none, Resident::host}) {
      LoaderOptions options = small();
      options.io.source = source;
      options.memory.resident = resident;
      Loader loader(dataset, options);
      EXPECT_EQ(loader.source(), source);
      EXPECT_EQ(loader.row_groups().num_groups(), dataset.info().num_chunks);
      for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
        EXPECT_EQ(rows_of(loader, epoch), in_order(kUneven, options, epoch));
      }
      if (resident == Resident::none) {
        EXPECT_EQ(loader.epoch_stats(1).chunk_loads, dataset.info().num_chunks);
        EXPECT_DOUBLE_EQ(loader.epoch_stats(1).read_amplification(), 1.0);
      }
    }
  }
}

TEST_F(ShardsTest, RowGroupsMayBeShorterThanChunks) {
  const Dataset dataset = Dataset::open(write(kUneven));
  LoaderOptions options = small();
  options.order.window_bytes = 2 * 3 * 60;  // half of a window is three rows
  Loader loader(dataset, options);
  EXPECT_EQ(loader.row_groups().group_samples(), 3);
  Rows all(static_cast<std::size_t>(dataset.size()));
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(sorted_rows(loader), all);
}

TEST_F(ShardsTest, PartsOfThemAreDelivered) {
  const Dataset dataset = Dataset::open(write(kUneven));
  for (const Resident resident : {Resident::none, Resident::host}) {
    LoaderOptions options = small();
    options.rows = RowSelection({{3, 4}, {18, 23}, {24, 30}, {66, 67}});
    options.memory.resident = resident;
    Loader loader(dataset, options);
    EXPECT_EQ(sorted_rows(loader), (Rows{3, 18, 19, 20, 21, 22, 24, 25, 26, 27, 28, 29, 66}));
  }
  LoaderOptions options = small();
  options.only_labels = {4};
  Loader loader(dataset, options);
  Rows expected;
  for (std::int64_t row = 0; row < dataset.size(); ++row) {
    if (test::label_of(row) == 4) expected.push_back(row);
  }
  EXPECT_EQ(sorted_rows(loader), expected);
}

TEST_F(ShardsTest, LargeFieldsAreStreamedFromEachFile) {
  const Rows files{300'000, 100'001, 1};
  const test::PackedFile tiny{.height = 1, .width = 1, .channels = 1};
  std::int64_t first = 0;
  for (std::size_t i = 0; i < files.size(); ++i) {
    test::PackedFile file = tiny;
    file.num_samples = files[i];
    file.chunk_samples = std::min<std::int64_t>(1000, files[i]);
    write_shard(scratch_.file("t.h5"), file,
                {static_cast<std::int64_t>(i), std::ssize(files), first, sum(files), "s"});
    first += files[i];
  }
  Loader loader(Dataset::open(shard_pattern(scratch_.file("t.h5"), 3)),
                {.batch_size = 5000,
                 .fields = {"weights"},
                 .order = {.window_bytes = 20'000},
                 .memory = {.budget = std::int64_t{16} << 20}});
  std::int64_t count = 0;
  for (const Batch& batch : loader.epoch(0)) {
    const auto weights = batch["weights"].values<float>();
    for (std::size_t i = 0; i < batch.sample_ids().size(); ++i, ++count) {
      ASSERT_EQ(weights[2 * i], static_cast<float>(batch.sample_ids()[i]));
    }
  }
  EXPECT_EQ(count, sum(files));
}

TEST_F(ShardsTest, StatesContinueAndKnowTheirDataset) {
  const std::string pattern = write(kUneven);
  const Dataset dataset = Dataset::open(pattern);
  Loader first(dataset, small());
  const Rows all = rows_of(first, 1);
  for (const std::size_t steps : {1U, 4U, 8U}) {
    Loader loader(dataset, small());
    loader.start_epoch(1);
    Rows rows;
    const auto append = [&rows](const Batch& batch) {
      const Rows more = rows_of(batch);
      rows.insert(rows.end(), more.begin(), more.end());
    };
    for (std::size_t i = 0; i < steps; ++i) append(*loader.next());
    LoaderOptions other = small(1);
    other.io.source = SourceKind::scatter;
    other.io.num_threads = 3;
    other.batch_size = 8;
    Loader resumed = Loader::resume(Dataset::open(pattern), other, loader.state());
    while (const auto batch = resumed.next()) append(*batch);
    EXPECT_EQ(rows, all);
  }
  const std::string state = first.state();
  write(kUneven);  // the same images, packed anew
  expect_error(ErrorCode::invalid_argument, {"another file", "train-*-of-00005.h5"},
               [&] { (void)Loader::resume(Dataset::open(pattern), small(), state); });
}

TEST_F(ShardsTest, DamageIsNamedByFileAndRow) {
  const Dataset before = Dataset::open(write(kUneven));
  const std::string third = before.info().shards[2].path;
  test::damage_image(third, kChunk);  // the first of the second chunk
  const Dataset dataset = Dataset::open(before.info().path);
  const VerifyResult result = verify_chunks(dataset);
  EXPECT_EQ(result.num_chunks, dataset.info().num_chunks);
  ASSERT_EQ(result.damaged.size(), 1U);
  EXPECT_EQ(result.damaged[0].chunk, 3 + 1 + 1);
  EXPECT_EQ(result.damaged[0].rows, (RowRange{32, 39}));
  EXPECT_EQ(result.damaged[0].damaged_rows, (std::vector<RowRange>{{32, 33}}));
  EXPECT_NE(result.damaged[0].reason.find("chunk 1 (rows 7 to 13) of images in " + third),
            std::string::npos)
      << result.damaged[0].reason;

  LoaderOptions options = small();
  options.io.verify = Verify::always;
  Loader raising(dataset, options);
  expect_error(ErrorCode::digest_mismatch, {third, "rows 7 to 13"},
               [&] { (void)rows_of(raising, 0); });
  options.io.on_error = OnError::skip;
  Loader skipping(dataset, options);
  Rows rows = rows_of(skipping, 0);
  EXPECT_EQ(std::ssize(rows), dataset.size() - 1);
  EXPECT_EQ(std::count(rows.begin(), rows.end(), 32), 0);
  ASSERT_EQ(skipping.skipped().size(), 1U);
  EXPECT_EQ(skipping.skipped()[0].first_row, 32);
  EXPECT_EQ(skipping.skipped()[0].num_rows, 1);
}

TEST_F(ShardsTest, AFileThatChangesEndsTheEpoch) {
  for (const OnError on_error : {OnError::raise, OnError::skip}) {
    const Dataset dataset = Dataset::open(write(kUneven));
    const std::string third = dataset.info().shards[2].path;
    LoaderOptions options = small();
    options.io.on_error = on_error;
    Loader loader(dataset, options);
    fs::resize_file(third, fs::file_size(third) - 1);
    expect_error(ErrorCode::corrupt_data, {third, "was changed"},
                 [&] { (void)rows_of(loader, 0); });
  }
}

TEST_F(ShardsTest, WhatDoesNotFitIsNamed) {
  const std::string pattern = write(kWhole);
  const std::string path = scratch_.file("train.h5");
  const auto name = [&](std::int64_t i) { return shard_path(path, i, 4); };
  const auto expect_refused = [&](ErrorCode code, const std::vector<std::string>& parts) {
    expect_error(code, parts, [&] { (void)Dataset::open(pattern); });
  };
  const ShardInfo second{1, 4, 21, 72, "a set"};
  const auto refused = [&](const ShardInfo& shard, const test::PackedFile& file,
                           std::vector<std::string> parts) {
    write_shard(path, file, shard);
    parts.push_back(name(1));
    expect_refused(ErrorCode::corrupt_data, parts);
  };
  const test::PackedFile file{.num_samples = 14, .chunk_samples = kChunk};
  refused({1, 4, 21, 72, "another"}, file, {name(0), "shard_set another", "a set"});
  refused({1, 4, 21, 73, "a set"}, file, {"73", "72"});
  refused({1, 4, 20, 72, "a set"}, file, {"begins at row 20"});
  refused(second, {.num_samples = 14, .width = 6}, {"[5,6,3]", "[5,4,3]"});
  refused(second, {.num_samples = 14, .layout = Layout::nchw}, {"does not belong to"});
  refused(second, {.num_samples = 14, .labels = false}, {"number of classes is 0", "10"});
  refused(second, {.num_samples = 14, .chunk_samples = 2}, {"chunks are [2,5,4,3]", "[7,5,4,3]"});

  const auto write_spec = [&](const auto& change) {
    DatasetSpec spec{.num_samples = 14, .height = 5, .width = 4, .channels = 3};
    spec.fields = {{{"labels", DType::int64, Shape{}}, std::vector<std::byte>(14 * 8)},
                   {{"weights", DType::float32, Shape{2}}, std::vector<std::byte>(14 * 8)}};
    for (int k = 0; k < 10; ++k) spec.class_names.push_back("class " + std::to_string(k));
    spec.shard = second;
    change(spec);
    DatasetWriter writer(name(1), spec, {.chunk_samples = kChunk, .overwrite = true});
    for (std::int64_t chunk = 0; chunk < 2; ++chunk) {
      writer.write_chunk(chunk, std::vector<std::byte>(kChunk * 60));
    }
    writer.close();
  };
  write_spec([](DatasetSpec& spec) { spec.seed = 9; });
  expect_refused(ErrorCode::corrupt_data, {name(1), "seed is 9", "it is 0"});
  write_spec([](DatasetSpec& spec) { spec.split = "val"; });
  expect_refused(ErrorCode::corrupt_data, {name(1), "split is val"});
  write_spec([](DatasetSpec& spec) { spec.class_names[3] = "dog"; });
  expect_refused(ErrorCode::corrupt_data, {name(1), "number 3 of its classes is dog", "class 3"});
  write_spec([](DatasetSpec& spec) { spec.fields[1].info.name = "boxes"; });
  expect_refused(ErrorCode::corrupt_data, {name(1), "boxes float32", "weights float32"});
  write_spec([](DatasetSpec& spec) { spec.shard.reset(); });
  expect_refused(ErrorCode::corrupt_data, {name(1), "not marked"});
  write_spec([](DatasetSpec&) {});
  EXPECT_EQ(Dataset::open(pattern).size(), 72);

  fs::copy_file(name(2), name(1), fs::copy_options::overwrite_existing);
  expect_refused(ErrorCode::corrupt_data, {name(2), "is " + name(1) + " once more"});
  fs::remove(name(1));
  fs::rename(name(2), name(1));
  expect_refused(ErrorCode::not_found, {"1 of its 4 files is missing", name(2)});
  test::write_packed(name(2), {.num_samples = 28, .chunk_samples = kChunk}, 35,
                     ShardInfo{1, 4, 35, 72, "a set"});
  expect_refused(ErrorCode::corrupt_data, {name(1), "shard 2 of 4, not 1 of 4"});
}

TEST_F(ShardsTest, MissingFilesAreCounted) {
  write(kWhole);
  const std::string path = scratch_.file("train.h5");
  expect_error(ErrorCode::not_found,
               {"9 of its 9 files", shard_path(path, 0, 9), shard_path(path, 2, 9), "6 more"},
               [&] { (void)Dataset::open(shard_pattern(path, 9)); });
  expect_error(ErrorCode::not_found, {"train-*.h5", "'train-*-of-00008.h5'"},
               [&] { (void)Dataset::open(scratch_.file("train-*.h5")); });
}

TEST_F(ShardsTest, AFileWithAStarInItsNameIsAFile) {
  const std::string path = scratch_.file("a-*-of-00002.h5");
  test::write_packed(path, {});
  EXPECT_TRUE(Dataset::open(path).info().shards.empty());
}

TEST_F(ShardsTest, ImpossibleShardsAreNotWritten) {
  for (const ShardInfo& shard :
       {ShardInfo{2, 2, 0, 100, ""}, ShardInfo{0, 4097, 0, 100, ""}, ShardInfo{0, 2, 1, 100, ""},
        ShardInfo{0, 2, 0, 99, ""}, ShardInfo{0, 2, -1, 100, ""}}) {
    expect_error(ErrorCode::invalid_argument, {"shard"},
                 [&] { test::write_packed(scratch_.file("x.h5"), {}, 0, shard); });
  }
}

TEST_F(ShardsTest, TakeNoMoreMemoryForTheirNumber) {
  test::PackedFile file{.height = 64, .width = 64};
  const Dataset many = Dataset::open(write(Rows(28, kChunk), "many.h5", file));
  file.num_samples = 28 * kChunk;
  test::write_packed(scratch_.file("one.h5"), file);
  const Dataset one = Dataset::open(scratch_.file("one.h5"));
  for (const SourceKind source :
       {SourceKind::mapped, SourceKind::scatter, SourceKind::direct, SourceKind::hdf5}) {
    for (const Verify verify : {Verify::off, Verify::always}) {
      const LoaderOptions options{.batch_size = 7,
                                  .io = {.num_threads = 8, .source = source, .verify = verify}};
      // A few numbers for each file, and no scratch memory for each.
      EXPECT_LT(Loader(many, options).memory_bytes(),
                Loader(one, options).memory_bytes() + 28 * 256)
          << to_string(source);
    }
  }
}

TEST_F(ShardsTest, KeepThreeDescriptorsAFile) {
  const std::string pattern = write(kUneven);
  const std::int64_t before = test::entries_of("/proc/self/fd");
  {
    const Dataset dataset = Dataset::open(pattern);
    EXPECT_LE(test::entries_of("/proc/self/fd"), before + 3 * std::ssize(kUneven));
  }
  EXPECT_EQ(test::entries_of("/proc/self/fd"), before);
}

TEST(CombinedInfo, MoreThanCanBeCountedIsAnError) {
  const auto claims = [](std::int64_t num_chunks, std::int64_t height = 1) {
    auto file = std::make_shared<Dataset::Impl>();
    file->info.num_samples = file->info.width = file->info.channels = 1;
    file->info.height = height;
    file->info.stored.shape = file->info.stored.chunk_shape = Shape{1, height, 1, 1};
    file->info.num_chunks = num_chunks;
    return file;
  };
  constexpr std::int64_t kHalf = std::int64_t{1} << 62;
  const std::vector<std::shared_ptr<const Dataset::Impl>> most = {claims(kHalf), claims(kHalf - 1)};
  EXPECT_EQ(h5::combined_info("a-*-of-2.h5", most).num_chunks, kHalf - 1 + kHalf);
  const std::vector<std::shared_ptr<const Dataset::Impl>> chunks = {claims(kHalf), claims(kHalf)};
  const std::vector<std::shared_ptr<const Dataset::Impl>> bytes = {claims(1, kHalf),
                                                                   claims(1, kHalf)};
  for (const auto& more : {chunks, bytes}) {
    expect_error(ErrorCode::corrupt_data, {"a-*-of-2.h5", "can be counted"},
                 [&] { (void)h5::combined_info("a-*-of-2.h5", more); });
  }
}

}  // namespace
}  // namespace chunkio
