#include <chrono>
#include <limits>
#include <set>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include <chunkio/loader.hpp>
#include <chunkio/tuning.hpp>

#include "support/errors.hpp"
#include "support/packed_loader.hpp"

namespace chunkio {
namespace {

using test::expect_error;
using test::rows_of;

using LoaderTest = test::PackedLoaderTest;

TEST_F(LoaderTest, EverySourceDeliversEverySampleOnceInTheOrderOfEpochOrder) {
  const Dataset dataset = Dataset::open(path_);
  for (const OrderMode mode :
       {OrderMode::chunk_shuffled, OrderMode::sequential, OrderMode::random}) {
    for (const SourceKind source :
         {SourceKind::mapped, SourceKind::scatter, SourceKind::direct, SourceKind::hdf5}) {
      for (const std::int64_t threads : {1, 2, 7}) {
        SCOPED_TRACE(std::string(to_string(mode)) + " " + std::string(to_string(source)));
        LoaderOptions options = small();
        options.order.mode = mode;
        options.order.version = threads == 1 ? 1 : 2;
        options.io.source = source;
        options.io.num_threads = threads;
        // Two chunks are half a window.
        const std::int64_t k = threads == 1 ? 9 : 18;
        Loader loader(dataset, options);
        EXPECT_EQ(loader.source(), source);
        EXPECT_EQ(loader.window_groups(), 36 / k);
        EXPECT_EQ(loader.row_groups().group_samples(), k);
        for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
          EXPECT_EQ(
              rows_of(loader, epoch),
              rows_of(EpochOrder(
                  RowGroups(k, file_.num_samples),
                  {.mode = mode, .seed = 7, .batch_size = 16, .window_groups = 36 / k}, epoch)));
          if (mode == OrderMode::random) continue;
          const LoaderStats stats = loader.epoch_stats(epoch);
          EXPECT_EQ(stats.chunk_loads, loader.row_groups().num_groups());
          EXPECT_DOUBLE_EQ(stats.read_amplification(), 1.0);
        }
      }
    }
  }
}

TEST_F(LoaderTest, MemoryBudgetBelowTheMinimumNamesIt) {
  const Dataset dataset = Dataset::open(path_);
  LoaderOptions options = small();
  const std::int64_t minimum = test::least_memory(dataset, options);
  options.memory.budget = minimum - 1;
  EXPECT_THROW(Loader(dataset, options), Error);
  options.memory.budget = minimum;
  Loader loader(dataset, options);
  EXPECT_EQ(loader.memory_bytes(), minimum);
  EXPECT_EQ(static_cast<std::int64_t>(rows_of(loader, 0).size()), file_.num_samples);
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
                                     .order = {.window_bytes = found.window_bytes},
                                     .memory = {.budget = found.memory_budget,
                                                .prefetch_depth = found.prefetch_depth,
                                                .resident = found.resident},
                                     .io = {.num_threads = found.num_threads}}))
        << "batches of " << batch;
  }
}

TEST_F(LoaderTest, FieldsAreOfTheirTypeAndThoseThatAreNotThereAreNamed) {
  const Dataset dataset = Dataset::open(path_);
  LoaderOptions options = small();
  options.fields = {"weights"};
  Loader loader(dataset, options);
  loader.start_epoch(0);
  EXPECT_THROW((void)(*loader.next())["weights"].values<double>(), Error);
  options.fields = {"nothing"};
  expect_error(ErrorCode::not_found, {"weights"}, [&] { Loader bad(dataset, options); });
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

TEST_F(LoaderTest, StatisticsNameTheBoundOnceSomethingWasDelivered) {
  Loader loader(Dataset::open(path_), small());
  EXPECT_EQ(loader.stats().bottleneck().bottleneck, Bottleneck::none);
  EXPECT_TRUE(loader.stats().bottleneck().evidence.empty());
  (void)rows_of(loader, 0);
  for (const LoaderStats& stats : {loader.stats(), loader.epoch_stats(0)}) {
    EXPECT_NE(stats.bottleneck().bottleneck, Bottleneck::none);
    EXPECT_FALSE(stats.bottleneck().summary().empty());
    EXPECT_EQ(stats.num_threads, loader.num_threads());
  }
  EXPECT_EQ(loader.epoch_stats(7).bottleneck().bottleneck, Bottleneck::none);
}

TEST_F(LoaderTest, NonsenseOptionsAreRefused) {
  const Dataset dataset = Dataset::open(path_);
  const auto refused = [&](auto change) {
    LoaderOptions options = small();
    change(options);
    expect_error(ErrorCode::invalid_argument, {}, [&] { Loader loader(dataset, options); });
  };
  refused([](LoaderOptions& o) { o.batch_size = 0; });
  refused([](LoaderOptions& o) { o.order.window_bytes = 0; });
  refused([](LoaderOptions& o) { o.io.num_threads = -1; });
  constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();
  refused([](LoaderOptions& o) { o.io.num_threads = kHuge; });
  refused([](LoaderOptions& o) { o.memory.prefetch_depth = kHuge; });
  refused([](LoaderOptions& o) { o.memory.max_held = kHuge; });
  refused([](LoaderOptions& o) { o.memory.prefetch_depth = 0; });
  refused([](LoaderOptions& o) { o.memory.max_held = 0; });
  refused([](LoaderOptions& o) { o.io.num_epochs = -1; });
  refused([](LoaderOptions& o) { o.ranks.rank = 1; });
  refused([](LoaderOptions& o) { o.order.lanes = 3; });
  refused([](LoaderOptions& o) { o.memory.budget = 0; });
  refused([](LoaderOptions& o) { o.io.disk_limit = DiskLimit{.request_seconds = -1}; });
}

TEST_F(LoaderTest, KeepsPrefetchDepthBatchesCompleteAhead) {
  // Windows of 9 rows in batches of one; so many ahead that two windows are by far not enough.
  LoaderOptions options = small(1);
  options.order.mode = OrderMode::sequential;
  options.memory.max_held = 1;
  for (const std::int64_t depth : {1, 25, 26, 27, 28, 29, 100}) {
    options.memory.prefetch_depth = depth;
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
  options.memory.max_held = 2;
  options.memory.when_held = WhenHeld::copy;
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
    (void)rows_of(batch);
    seen.insert(batch.epoch() * 1000 + batch.step());
  }
  EXPECT_EQ(seen.size(), held.size());
}

TEST_F(LoaderTest, CopiesEndWhenBatchesAreGivenBack) {
  LoaderOptions options = small();
  options.memory.max_held = 1;
  options.memory.when_held = WhenHeld::copy;
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
    (void)rows_of(*batch);
    batch.reset();
  }
  EXPECT_EQ(loader.stats().copied_batches, 1);
}

TEST_F(LoaderTest, AWaitCanBeEndedAndGoesOn) {
  struct Stop {};
  int calls = 0;
  LoaderOptions options = small();
  // Half a second for the first window, so that it is waited for.
  options.io.disk_limit =
      DiskLimit{.bytes_per_second = 1e9, .request_seconds = 0.5, .queue_depth = 1};
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
  (void)rows_of(*batch);
  EXPECT_GT(calls, 2);
}

TEST_F(LoaderTest, PrintsNothing) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  {
    Loader loader(Dataset::open(path_), small());
    (void)rows_of(loader, 0);
    loader.restore(loader.state());
  }
  LoaderOptions options = small();
  options.memory.budget = 1;
  // Said by the exception, and nowhere else.
  EXPECT_THROW(Loader(Dataset::open(path_), options), Error);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace chunkio
