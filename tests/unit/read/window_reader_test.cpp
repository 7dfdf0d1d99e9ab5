#include "read/window_reader.hpp"

#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "support/scratch.hpp"
#include "support/window_reader_fixture.hpp"

namespace chunkio::read {
namespace {

constexpr std::int64_t kSampleBytes = Fixture::kSampleBytes;

TEST(WindowReader, RandomSetups) {
  const std::uint64_t seed = test::test_seed();
  std::mt19937_64 random(seed);
  const auto draw = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  for (int round = 0; round < 120; ++round) {
    Case setup;
    const std::int64_t lanes = draw(1, 4);  // of a rank
    setup.order.world_size = draw(1, 3);
    setup.order.rank = draw(0, setup.order.world_size - 1);
    setup.order.lanes = lanes * setup.order.world_size;
    setup.num_samples = draw(setup.order.lanes, 300);
    setup.group_samples = draw(1, 40);
    setup.order.seed = random();
    setup.order.window_groups = draw(1, 12);
    setup.order.batch_size = lanes * draw(1, 20);
    setup.order.uneven = static_cast<Uneven>(draw(0, 2));
    setup.order.drop_last = setup.order.uneven != Uneven::exact && draw(0, 1) == 1;
    setup.threads = draw(1, 4);
    setup.masks = draw(0, 1) == 1;
    SCOPED_TRACE("seed " + std::to_string(seed) + " round " + std::to_string(round));
    Fixture fixture(setup);
    for (std::int64_t epoch = 0; epoch < 2; ++epoch) expect_epoch(fixture, setup, epoch);
  }
}

TEST(WindowReader, DeliversSelectionsOfRows) {
  const std::uint64_t seed = test::test_seed();
  std::mt19937_64 random(seed);
  for (const OrderMode mode :
       {OrderMode::chunk_shuffled, OrderMode::sequential, OrderMode::random}) {
    for (int round = 0; round < 12; ++round) {
      SCOPED_TRACE(std::string(to_string(mode)) + " seed " + std::to_string(seed) + " round " +
                   std::to_string(round));
      Case setup;
      setup.num_samples = 150;
      setup.order.mode = mode;
      setup.order.lanes = static_cast<std::int64_t>(1 + random() % 4);
      setup.order.batch_size = 3 * setup.order.lanes;
      setup.masks = round % 2 == 0;
      // From nearly none to nearly all.
      std::vector<std::int64_t> rows;
      for (std::int64_t row = 0; row < setup.num_samples; ++row) {
        if (static_cast<int>(random() % 12) <= round) rows.push_back(row);
      }
      while (static_cast<std::int64_t>(rows.size()) < setup.order.lanes) {
        rows.push_back(setup.num_samples + static_cast<std::int64_t>(rows.size()));
        setup.num_samples += 10;
      }
      setup.rows = RowSelection::of(rows);
      Fixture fixture(setup);
      for (std::int64_t epoch = 0; epoch < 2; ++epoch) expect_epoch(fixture, setup, epoch);
    }
  }
}

TEST(WindowReader, CountsItsTime) {
  Case setup;
  setup.num_epochs = 2;
  Fixture fixture(setup);
  for (std::int64_t epoch = 0; epoch < 2; ++epoch) expect_epoch(fixture, setup, epoch);
  const LoaderStats all = fixture.reader->stats();
  const LoaderStats first = fixture.reader->epoch_stats(0);
  EXPECT_EQ(all.num_threads, setup.threads);
  EXPECT_EQ(first.num_threads, setup.threads);
  EXPECT_GE(all.seconds, first.seconds);
  EXPECT_GE(all.seconds, all.stall_seconds);
  EXPECT_GE(all.plan_seconds, first.plan_seconds);
  EXPECT_GT(first.plan_seconds, 0);
  EXPECT_GT(first.copy_seconds, 0) << "what the source does not account for is copying";
  EXPECT_EQ(first.read_seconds, 0);
  EXPECT_EQ(first.decode_seconds, 0);
}

/// Else making pages, which happens once, would be counted as copying.
TEST(WindowReader, SourcesWriteToPagesThatExist) {
  const auto page_bytes = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  Case setup;
  setup.num_samples = 2000;
  setup.order.batch_size = 300;
  setup.masks = true;
  Fixture fixture(setup);
  std::atomic<int> rows_seen{0};
  std::atomic<int> rows_without_page{0};
  fixture.script->at_rows = [&](std::span<const RowTarget> rows) {
    for (const RowTarget& row : rows) {
      unsigned char is_there = 0;
      const auto at = reinterpret_cast<std::uintptr_t>(row.target);
      ASSERT_EQ(::mincore(reinterpret_cast<void*>(at - at % page_bytes), page_bytes, &is_there), 0);
      ++rows_seen;
      if ((is_there & 1) == 0) ++rows_without_page;
    }
  };
  for (std::int64_t epoch = 0; epoch < 2; ++epoch) expect_epoch(fixture, setup, epoch);
  EXPECT_GE(rows_seen, 2 * 2 * 2000);
  EXPECT_EQ(rows_without_page, 0);
}

TEST(WindowReader, SlowConsumerCostsNoProcessorTime) {
  const Case setup;
  Fixture fixture(setup);
  fixture.reader->start(0);
  auto held = fixture.reader->next();
  // The ring fills, then all workers wait: these are the row groups of the windows that fit.
  std::int64_t groups = 0;
  for (std::int64_t window = 0; window < plan::num_windows(fixture.order, 0); ++window) {
    plan::WindowPlan plan;
    plan::plan_window(fixture.order, 0, window, plan);
    const std::int64_t slots = (plan.end_index - 1) / setup.order.batch_size + 1;
    if (slots > fixture.num_slots) break;
    groups += static_cast<std::int64_t>(plan.reads.size());
  }
  ASSERT_LT(groups, setup.groups().num_groups()) << "the whole epoch fits";
  while (fixture.script->calls < groups) std::this_thread::yield();
  const auto processor_seconds = [] {
    timespec time{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  const double before = processor_seconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(400));
  EXPECT_LT(processor_seconds() - before, 0.1);
  held.reset();
  fixture.drain();
  // The rest of the epoch did not fit the ring, so at least one worker was woken for it.
  EXPECT_GE(fixture.reader->stats().output_wait_seconds, 0.4);
}

TEST(WindowReader, APauseBetweenTwoEpochsCountsForNeither) {
  const Case setup;
  Fixture fixture(setup);
  constexpr double kPause = 0.5;
  expect_epoch(fixture, setup, 0);
  std::this_thread::sleep_for(std::chrono::duration<double>(kPause));
  expect_epoch(fixture, setup, 1);
  for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
    const LoaderStats stats = fixture.reader->epoch_stats(epoch);
    EXPECT_LT(stats.output_wait_seconds + stats.input_wait_seconds, kPause / 2) << epoch;
    EXPECT_LT(stats.seconds, kPause / 2) << epoch;
  }
  // The next epoch did not fit the ring, so workers waited for the consumer all the time.
  EXPECT_GE(fixture.reader->stats().output_wait_seconds, kPause / 2);
}

TEST(WindowReader, APauseInAnEpochCountsForIt) {
  const Case setup;
  Fixture fixture(setup);
  constexpr double kPause = 0.4;
  expect_epoch(fixture, setup, 0);
  fixture.reader->start(1);
  ASSERT_TRUE(fixture.reader->next());
  std::this_thread::sleep_for(std::chrono::duration<double>(kPause));
  expect_rest(fixture, setup, 1, 1);
  EXPECT_LT(fixture.reader->epoch_stats(0).output_wait_seconds, kPause / 2);
  EXPECT_GE(fixture.reader->epoch_stats(1).output_wait_seconds, kPause / 2);
}

TEST(WindowReader, RemembersTheLastEpochsInWhateverOrderTheyCame) {
  const Case setup;
  Fixture fixture(setup);
  // Down, so that a newer epoch always has a smaller number.
  for (std::int64_t epoch = 30; epoch > 20; --epoch) expect_epoch(fixture, setup, epoch);
  for (std::int64_t epoch = 21; epoch <= 28; ++epoch) {
    EXPECT_EQ(fixture.reader->epoch_stats(epoch).images, setup.num_samples) << epoch;
    EXPECT_EQ(fixture.reader->epoch_stats(epoch).chunk_loads, setup.groups().num_groups());
  }
  EXPECT_EQ(fixture.reader->epoch_stats(30).images, 0);
}

TEST(WindowReader, AnEpochBegunAgainCountsAnew) {
  const Case setup;
  Fixture fixture(setup);
  // The second time 1 comes by itself after 0, prefetched.
  for (const std::int64_t epoch : {0, 1, 0, 1}) expect_epoch(fixture, setup, epoch);
  for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
    const LoaderStats stats = fixture.reader->epoch_stats(epoch);
    EXPECT_EQ(stats.images, setup.num_samples);
    EXPECT_EQ(stats.bytes_read, setup.num_samples * kSampleBytes);
    EXPECT_EQ(stats.chunk_loads, setup.groups().num_groups());
  }
}

TEST(WindowReader, ReadsEachGroupOnceAnEpochAndNothingBeyondTheLast) {
  for (const bool masks : {false, true}) {  // which are read with their images
    Case setup;
    setup.num_epochs = 2;
    setup.masks = masks;
    Fixture fixture(setup);
    for (std::int64_t epoch = 0; epoch < 2; ++epoch) expect_epoch(fixture, setup, epoch);
    const std::int64_t groups = setup.groups().num_groups();
    for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
      const LoaderStats stats = fixture.reader->epoch_stats(epoch);
      EXPECT_EQ(stats.chunk_loads, groups);
      EXPECT_EQ(stats.images, setup.num_samples);
      EXPECT_EQ(stats.batches, fixture.order.num_steps());
      EXPECT_EQ(stats.bytes_read,
                setup.num_samples * (kSampleBytes + (masks ? Fixture::kMaskBytes : 0)));
      EXPECT_EQ(stats.bytes_delivered, stats.bytes_read);
    }
    EXPECT_EQ(fixture.reader->stats().chunk_loads, 2 * groups);
    EXPECT_EQ(fixture.script->calls, (masks ? 4 : 2) * groups);
  }
}

TEST(WindowReader, BatchesMayBeReleasedOnOtherThreads) {
  const Case setup;
  Fixture fixture(setup);
  std::vector<std::thread> threads;
  for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
    fixture.reader->start(epoch);
    while (true) {
      // A thread that lags more than max_held behind is a legal error; wait for the oldest then.
      if (threads.size() == static_cast<std::size_t>(setup.max_held)) {
        threads.front().join();
        threads.erase(threads.begin());
      }
      auto slot = fixture.reader->next();
      if (!slot) break;
      threads.emplace_back([slot = std::move(slot)]() mutable { slot.reset(); });
    }
    for (std::thread& thread : threads) thread.join();
    threads.clear();
  }
}

}  // namespace
}  // namespace chunkio::read
