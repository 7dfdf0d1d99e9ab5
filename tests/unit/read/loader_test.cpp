#include <algorithm>
#include <chrono>
#include <filesystem>
#include <limits>
#include <numeric>
#include <set>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include <chunkio/loader.hpp>
#include <chunkio/tuning.hpp>

#include "support/pixels.hpp"
#include "support/scratch.hpp"

namespace chunkio {
namespace {

class LoaderTest : public ::testing::Test {
 protected:
  void SetUp() override { test::write_packed(path_, file_); }

  void expect_contents(const Batch& batch) {
    const TensorView images = batch.images();
    ASSERT_EQ(images.dtype(), DType::uint8);
    ASSERT_EQ(images.shape(), (Shape{batch.size(), file_.height, file_.width, file_.channels}));
    ASSERT_EQ(batch.labels().shape(), Shape{batch.size()});
    const auto labels = batch.labels().values<std::int64_t>();
    for (std::int64_t i = 0; i < batch.size(); ++i) {
      const std::int64_t sample = batch.sample_ids()[static_cast<std::size_t>(i)];
      const auto expected = test::image(sample, file_.sample_bytes());
      ASSERT_TRUE(
          std::equal(expected.begin(), expected.end(), images.data() + i * file_.sample_bytes()))
          << "sample " << sample;
      ASSERT_EQ(labels[static_cast<std::size_t>(i)], test::label_of(sample));
    }
  }

  std::vector<std::int64_t> run_epoch(Loader& loader, std::int64_t epoch) {
    std::vector<std::int64_t> samples;
    for (const Batch& batch : loader.epoch(epoch)) {
      EXPECT_EQ(batch.epoch(), epoch);
      expect_contents(batch);
      samples.insert(samples.end(), batch.sample_ids().begin(), batch.sample_ids().end());
    }
    return samples;
  }

  test::ScratchFolder scratch_;
  test::PackedFile file_{.num_samples = 230, .chunk_samples = 9};
  std::string path_ = scratch_.file("train.h5");
};

LoaderOptions small(std::int64_t batch = 16) {
  // Windows of a few chunks, so that the order is more than one shuffle of everything.
  return {.batch_size = batch, .seed = 7, .window_bytes = 4 * 9 * 60};
}

TEST_F(LoaderTest, DeliversEverySampleOnceInTheOrderOfEpochOrder) {
  const Dataset dataset = Dataset::open(path_);
  Loader loader(dataset, small());
  EXPECT_EQ(loader.window_groups(), 4);
  EXPECT_EQ(loader.row_groups().group_samples(), 9);
  for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
    const std::vector<std::int64_t> samples = run_epoch(loader, epoch);
    const EpochOrder order(RowGroups(9, file_.num_samples),
                           {.seed = 7, .batch_size = 16, .window_groups = 4}, epoch);
    std::vector<std::int64_t> expected;
    for (std::int64_t step = 0; step < order.num_steps(); ++step) {
      const auto batch = order.batch(step);
      expected.insert(expected.end(), batch.begin(), batch.end());
    }
    EXPECT_EQ(samples, expected);
    EXPECT_EQ(std::set<std::int64_t>(samples.begin(), samples.end()).size(), samples.size());
    EXPECT_EQ(static_cast<std::int64_t>(samples.size()), file_.num_samples);
    const LoaderStats stats = loader.epoch_stats(epoch);
    EXPECT_EQ(stats.chunk_loads, loader.row_groups().num_groups());
    EXPECT_DOUBLE_EQ(stats.read_amplification(), 1.0);
  }
}

TEST_F(LoaderTest, SourcesAndThreadsDeliverTheSameBatches) {
  const Dataset dataset = Dataset::open(path_);
  for (const OrderMode mode :
       {OrderMode::chunk_shuffled, OrderMode::sequential, OrderMode::random}) {
    std::vector<std::vector<std::int64_t>> runs;
    for (const SourceKind source :
         {SourceKind::mapped, SourceKind::scatter, SourceKind::direct, SourceKind::hdf5}) {
      for (const std::int64_t threads : {1, 2, 7}) {
        LoaderOptions options = small();
        options.order = mode;
        options.source = source;
        options.num_threads = threads;
        Loader loader(dataset, options);
        EXPECT_EQ(loader.source(), source);
        runs.push_back(run_epoch(loader, 1));
      }
    }
    for (const auto& run : runs) EXPECT_EQ(run, runs.front());
  }
}

TEST_F(LoaderTest, SeedAndEpochChangeTheOrder) {
  const Dataset dataset = Dataset::open(path_);
  Loader loader(dataset, small());
  LoaderOptions other = small();
  other.seed = 8;
  Loader reseeded(dataset, other);
  const auto first = run_epoch(loader, 0);
  EXPECT_NE(first, run_epoch(loader, 1));
  EXPECT_NE(first, run_epoch(reseeded, 0));
  EXPECT_EQ(first, run_epoch(loader, 0));
}

TEST_F(LoaderTest, MemoryBudgetBelowTheMinimumNamesIt) {
  const Dataset dataset = Dataset::open(path_);
  LoaderOptions options = small();
  options.memory_budget = 1000;
  std::int64_t minimum = 0;
  try {
    Loader loader(dataset, options);
    FAIL() << "1000 bytes were enough";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::out_of_resources);
    const std::string message = error.what();
    const std::string before = "need at least ";
    ASSERT_NE(message.find(before), std::string::npos) << message;
    minimum = std::stoll(message.substr(message.find(before) + before.size()));
  }
  options.memory_budget = minimum - 1;
  EXPECT_THROW(Loader(dataset, options), Error);
  options.memory_budget = minimum;
  Loader loader(dataset, options);
  EXPECT_EQ(loader.memory_bytes(), minimum);
  EXPECT_EQ(static_cast<std::int64_t>(run_epoch(loader, 0).size()), file_.num_samples);
}

TEST_F(LoaderTest, FitsTheMemoryThatTuneFinds) {
  const Dataset dataset = Dataset::open(path_);
  for (const std::int64_t batch : {1, 16, 1000}) {
    const Tuning found = tune({.num_samples = dataset.size(),
                               .sample_bytes = file_.sample_bytes(),
                               .row_bytes = 8,
                               .stored = stored_groups(dataset.info()),
                               .batch_size = batch},
                              {});
    EXPECT_NO_THROW(Loader(dataset, {.batch_size = batch,
                                     .window_bytes = found.window_bytes,
                                     .num_threads = found.num_threads,
                                     .prefetch_depth = found.prefetch_depth,
                                     .memory_budget = found.memory_budget,
                                     .resident = found.resident}))
        << "batches of " << batch;
  }
}

TEST_F(LoaderTest, FieldsComeBesideTheImages) {
  const Dataset dataset = Dataset::open(path_);
  LoaderOptions options = small();
  options.fields = {"weights"};
  Loader loader(dataset, options);
  for (const Batch& batch : loader.epoch(0)) {
    const TensorView weights = batch.field("weights");
    ASSERT_EQ(weights.shape(), (Shape{batch.size(), 2}));
    const auto values = weights.values<float>();
    for (std::size_t i = 0; i < batch.sample_ids().size(); ++i) {
      EXPECT_EQ(values[2 * i], static_cast<float>(batch.sample_ids()[i]));
      EXPECT_EQ(values[2 * i + 1], -static_cast<float>(batch.sample_ids()[i]));
    }
    EXPECT_THROW((void)batch.field("nothing"), Error);
    EXPECT_THROW((void)weights.values<double>(), Error);
  }
  options.fields = {"nothing"};
  try {
    Loader bad(dataset, options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::not_found);
    EXPECT_NE(std::string(error.what()).find("weights"), std::string::npos)
        << "should say what there is";
  }
}

TEST_F(LoaderTest, FileWithoutLabelsHasEmptyLabels) {
  const std::string path = scratch_.file("unlabelled.h5");
  test::write_packed(path, {.num_samples = 20, .labels = false});
  Loader loader(Dataset::open(path), small(8));
  for (const Batch& batch : loader.epoch(0)) {
    EXPECT_TRUE(batch.labels().empty());
    EXPECT_FALSE(batch.images().empty());
  }
}

TEST_F(LoaderTest, BatchLargerThanTheDatasetIsOneShortBatch) {
  Loader loader(Dataset::open(path_), small(1000));
  EXPECT_EQ(loader.num_steps(), 1);
  const std::vector<std::int64_t> samples = run_epoch(loader, 0);
  EXPECT_EQ(static_cast<std::int64_t>(samples.size()), file_.num_samples);
}

TEST_F(LoaderTest, UnfilteredChunksAboveHalfAWindowAreCut) {
  LoaderOptions options = small();
  options.window_bytes = 9 * 60;  // one chunk is more than half a window
  Loader loader(Dataset::open(path_), options);
  EXPECT_EQ(loader.row_groups().group_samples(), 4);
  EXPECT_EQ(loader.window_groups(), 2);
  EXPECT_EQ(static_cast<std::int64_t>(run_epoch(loader, 0).size()), file_.num_samples);
}

TEST_F(LoaderTest, BatchesAreCopyableAndOutliveTheLoader) {
  Batch kept;
  {
    Loader loader(Dataset::open(path_), small());
    loader.start_epoch(0);
    const std::optional<Batch> batch = loader.next();
    ASSERT_TRUE(batch);
    kept = *batch;
  }
  expect_contents(kept);
}

TEST_F(LoaderTest, TruncationWhileStreamingIsAnErrorForEverySource) {
  for (const SourceKind source :
       {SourceKind::mapped, SourceKind::scatter, SourceKind::direct, SourceKind::hdf5}) {
    const std::string path = scratch_.file(std::string(to_string(source)) + ".h5");
    test::write_packed(path, file_);
    LoaderOptions options = small(4);
    options.source = source;
    Loader loader(Dataset::open(path), options);
    loader.start_epoch(0);
    std::optional<Batch> batch = loader.next();
    ASSERT_TRUE(batch);
    // Somewhere among the images, inside a page.
    std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2 + 123);
    bool failed = false;
    try {
      for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
        if (epoch > 0) loader.start_epoch(epoch);
        for (; batch; batch = loader.next()) expect_contents(*batch);
      }
    } catch (const Error& error) {
      failed = error.code() == ErrorCode::corrupt_data || error.code() == ErrorCode::io_failed;
      EXPECT_NE(std::string(error.what()).find(path), std::string::npos) << error.what();
    }
    EXPECT_TRUE(failed) << to_string(source);
  }
}

TEST_F(LoaderTest, SkipLeavesOutADamagedChunkAndSaysWhich) {
  // One byte of row 40, in the chunk of rows 36 to 44.
  std::vector<std::uint8_t> bytes = test::read_bytes(path_);
  const auto row = test::image(40, file_.sample_bytes());
  const auto found = std::search(bytes.begin(), bytes.end(), row.begin(), row.end(),
                                 [](std::uint8_t byte, std::byte wanted) {
                                   return byte == static_cast<std::uint8_t>(wanted);
                                 });
  ASSERT_NE(found, bytes.end());
  *found ^= 1;
  test::write_bytes(path_, bytes);

  const Dataset dataset = Dataset::open(path_);
  for (const SourceKind source :
       {SourceKind::mapped, SourceKind::scatter, SourceKind::direct, SourceKind::hdf5}) {
    SCOPED_TRACE(std::string(to_string(source)));
    LoaderOptions options = small();
    options.source = source;
    options.verify = Verify::always;
    try {
      Loader loader(dataset, options);
      (void)run_epoch(loader, 0);
      ADD_FAILURE() << "damage was not noticed";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::digest_mismatch) << error.what();
    }

    options.on_error = OnError::skip;
    Loader loader(dataset, options);
    for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
      const std::vector<std::int64_t> samples = run_epoch(loader, epoch);
      EXPECT_EQ(static_cast<std::int64_t>(samples.size()), file_.num_samples - 9);
      for (const std::int64_t sample : samples) EXPECT_NE(sample / 9, 4);
      EXPECT_EQ(loader.epoch_stats(epoch).skipped_images, 9);
    }
    const std::vector<SkippedRows> skipped = loader.skipped();
    ASSERT_EQ(skipped.size(), 1U);
    EXPECT_EQ(skipped[0].first_row, 36);
    EXPECT_EQ(skipped[0].num_rows, 9);
    EXPECT_NE(skipped[0].reason.find(path_), std::string::npos) << skipped[0].reason;
  }
}

TEST_F(LoaderTest, SkipDoesNotHideAFileThatWasCutShort) {
  LoaderOptions options = small(4);
  options.on_error = OnError::skip;
  Loader loader(Dataset::open(path_), options);
  loader.start_epoch(0);
  ASSERT_TRUE(loader.next());
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) / 2 + 123);
  const auto drain = [&] {
    for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
      while (const auto batch = loader.next()) expect_contents(*batch);
      loader.start_epoch(epoch + 1);
    }
  };
  EXPECT_THROW(drain(), Error);
}

TEST_F(LoaderTest, StatisticsNameTheBoundOnceSomethingWasDelivered) {
  Loader loader(Dataset::open(path_), small());
  EXPECT_EQ(loader.stats().diagnosis().bound, Bound::none);
  EXPECT_TRUE(loader.stats().diagnosis().evidence.empty());
  (void)run_epoch(loader, 0);
  for (const LoaderStats& stats : {loader.stats(), loader.epoch_stats(0)}) {
    EXPECT_NE(stats.diagnosis().bound, Bound::none);
    EXPECT_FALSE(stats.diagnosis().summary().empty());
    EXPECT_EQ(stats.num_threads, loader.num_threads());
  }
  EXPECT_EQ(loader.epoch_stats(7).diagnosis().bound, Bound::none);
}

TEST_F(LoaderTest, NonsenseOptionsAreRefused) {
  const Dataset dataset = Dataset::open(path_);
  const auto refused = [&](auto change) {
    LoaderOptions options = small();
    change(options);
    try {
      Loader loader(dataset, options);
      return false;
    } catch (const Error& error) {
      return error.code() == ErrorCode::invalid_argument;
    }
  };
  EXPECT_TRUE(refused([](LoaderOptions& o) { o.batch_size = 0; }));
  EXPECT_TRUE(refused([](LoaderOptions& o) { o.window_bytes = 0; }));
  EXPECT_TRUE(refused([](LoaderOptions& o) { o.num_threads = -1; }));
  constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();
  EXPECT_TRUE(refused([](LoaderOptions& o) { o.num_threads = kHuge; }));
  EXPECT_TRUE(refused([](LoaderOptions& o) { o.prefetch_depth = kHuge; }));
  EXPECT_TRUE(refused([](LoaderOptions& o) { o.max_held = kHuge; }));
  EXPECT_TRUE(refused([](LoaderOptions& o) { o.prefetch_depth = 0; }));
  EXPECT_TRUE(refused([](LoaderOptions& o) { o.max_held = 0; }));
  EXPECT_TRUE(refused([](LoaderOptions& o) { o.num_epochs = -1; }));
  EXPECT_TRUE(refused([](LoaderOptions& o) { o.rank = 1; }));
  EXPECT_TRUE(refused([](LoaderOptions& o) { o.lanes = 3; }));
  EXPECT_TRUE(refused([](LoaderOptions& o) { o.memory_budget = 0; }));
}

TEST_F(LoaderTest, KeepsPrefetchDepthBatchesCompleteAhead) {
  // Windows of 9 rows in batches of one; so many ahead that two windows are by far not enough.
  LoaderOptions options = small(1);
  options.order = OrderMode::sequential;
  options.max_held = 1;
  for (const std::int64_t depth : {1, 25, 26, 27, 28, 29, 100}) {
    options.prefetch_depth = depth;
    Loader loader(Dataset::open(path_), options);
    const std::int64_t taken = 5;
    loader.start_epoch(0);
    for (std::int64_t i = 0; i < taken; ++i) ASSERT_TRUE(loader.next());
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (loader.stats().bytes_read < (taken + depth) * file_.sample_bytes()) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "prefetch_depth " << depth;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
}

TEST_F(LoaderTest, WhoHoldsTooManyGetsCopiesIfAskedTo) {
  LoaderOptions options = small();
  options.max_held = 2;
  options.when_held = WhenHeld::copy;
  std::vector<Batch> held;
  LoaderStats stats;
  {
    Loader loader(Dataset::open(path_), options);
    for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
      loader.start_epoch(epoch);
      while (auto batch = loader.next()) held.push_back(*std::move(batch));
    }
    stats = loader.stats();
    // What is given back is used again, so nothing is copied any more.
    const std::vector<Batch> all = std::exchange(held, {});
    held.assign(all.begin() + 2, all.end());
  }
  EXPECT_EQ(stats.batches, 45);
  EXPECT_EQ(stats.copied_batches, 43);
  ASSERT_EQ(held.size(), 43U);
  std::set<std::int64_t> seen;
  for (const Batch& batch : held) {
    expect_contents(batch);
    seen.insert(batch.epoch() * 1000 + batch.step());
  }
  EXPECT_EQ(seen.size(), held.size());
}

TEST_F(LoaderTest, CopiesEndWhenBatchesAreGivenBack) {
  LoaderOptions options = small();
  options.max_held = 1;
  options.when_held = WhenHeld::copy;
  Loader loader(Dataset::open(path_), options);
  loader.start_epoch(0);
  {
    const auto first = loader.next();
    const auto second = loader.next();
    EXPECT_FALSE(first->copied());
    EXPECT_TRUE(second->copied());
    EXPECT_EQ(loader.stats().copied_batches, 1);
  }
  while (auto batch = loader.next()) {
    expect_contents(*batch);
    batch.reset();
  }
  EXPECT_EQ(loader.stats().copied_batches, 1);
}

TEST_F(LoaderTest, AWaitCanBeEndedAndGoesOn) {
  struct Stop {};
  int calls = 0;
  LoaderOptions options = small();
  // Half a second for the first window, so that it is waited for.
  options.disk_limit = DiskLimit{.bytes_per_second = 1e9, .request_seconds = 0.5, .queue_depth = 1};
  options.on_wait = [&calls] {
    if (++calls <= 2) throw Stop{};
  };
  Loader loader(Dataset::open(path_), options);
  loader.start_epoch(0);
  EXPECT_THROW(static_cast<void>(loader.next()), Stop);
  // The thread that waits no longer may do anything else meanwhile.
  EXPECT_EQ(loader.position().step, 0);
  EXPECT_THROW(static_cast<void>(loader.next()), Stop);
  const auto batch = loader.next();
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->step(), 0);
  expect_contents(*batch);
  EXPECT_GT(calls, 2);
}

TEST_F(LoaderTest, PrintsNothing) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  {
    Loader loader(Dataset::open(path_), small());
    (void)run_epoch(loader, 0);
    loader.restore(loader.state());
  }
  try {
    LoaderOptions options = small();
    options.memory_budget = 1;
    const Loader refused(Dataset::open(path_), options);
    ADD_FAILURE() << "one byte was enough";
  } catch (const Error&) {
    // Said by the exception, and nowhere else.
  }
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_F(LoaderTest, RanksTogetherDeliverTheDatasetExactlyOnce) {
  const Dataset dataset = Dataset::open(path_);
  std::multiset<std::int64_t> delivered;
  for (std::int64_t rank = 0; rank < 4; ++rank) {
    LoaderOptions options = small();
    options.rank = rank;
    options.world_size = 4;
    options.uneven = Uneven::exact;
    Loader loader(dataset, options);
    const auto samples = run_epoch(loader, 0);
    delivered.insert(samples.begin(), samples.end());
  }
  EXPECT_EQ(static_cast<std::int64_t>(delivered.size()), file_.num_samples);
  EXPECT_EQ(std::set<std::int64_t>(delivered.begin(), delivered.end()).size(), delivered.size());
}

}  // namespace
}  // namespace chunkio
