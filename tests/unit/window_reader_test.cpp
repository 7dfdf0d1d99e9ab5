#include "pipeline/window_reader.hpp"

#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "pixels.hpp"
#include "scratch.hpp"

namespace chunkio::pipeline {
namespace {

constexpr std::int64_t kSampleBytes = 24;

/// Knows its pictures; does what it is told at the n-th call.
class FakeSource final : public ChunkSource {
 public:
  struct Script {
    std::atomic<std::int64_t> calls{0};
    std::int64_t fail_at = -1;
    std::chrono::microseconds delay{0};
    std::function<void(std::int64_t)> at_call;
  };
  explicit FakeSource(std::shared_ptr<Script> script) : script_(std::move(script)) {}

  PlaceCost place(const RowGroup& group, std::span<const RowTarget> rows,
                  std::stop_token stop) const override {
    const std::int64_t call = script_->calls.fetch_add(1);
    if (script_->at_call) script_->at_call(call);
    if (call == script_->fail_at) throw Error(ErrorCode::io_failed, "call " + std::to_string(call));
    if (script_->delay.count() > 0) std::this_thread::sleep_for(script_->delay);
    if (stop.stop_requested()) throw Error(ErrorCode::cancelled, "stopped");
    for (const RowTarget& row : rows) {
      EXPECT_LT(row.row, group.num_rows);
      const auto bytes = test::picture(group.first_row + row.row, kSampleBytes);
      std::memcpy(row.target, bytes.data(), bytes.size());
    }
    return {.bytes_read = static_cast<std::int64_t>(rows.size()) * kSampleBytes};
  }
  [[nodiscard]] std::int64_t memory_bytes(std::int64_t) const noexcept override { return 0; }

 private:
  std::shared_ptr<Script> script_;
};

struct Case {
  std::int64_t num_samples = 100;
  std::int64_t group_samples = 7;
  OrderOptions order{.seed = 5, .batch_size = 8, .window_groups = 3};
  std::int64_t threads = 2;
  std::int64_t max_held = 3;
  std::optional<std::int64_t> num_epochs;
};

struct Fixture {
  explicit Fixture(const Case& setup)
      : order(RowGroups(setup.group_samples, setup.num_samples), setup.order, 0) {
    RingLayout layout{
        .rows = std::max<std::int64_t>(order.num_steps() == 0 ? 1 : order.batch_rows(0), 1),
        .sample_shape = Shape{2, 4, 3},
        .sample_bytes = kSampleBytes,
        .has_labels = true,
        .fields = {{.info = {"labels", DType::int64, Shape{}}, .row_bytes = 8}}};
    const std::int64_t window = plan::max_window_samples(order, 1);
    const std::int64_t span = window / plan::lane_batch(order) + 2;
    ring = std::make_shared<Ring>(std::move(layout), 2 * span + setup.max_held);
    std::vector<std::int64_t> labels;
    for (std::int64_t row = 0; row < setup.num_samples; ++row)
      labels.push_back(test::label_of(row));
    reader = std::make_unique<WindowReader>(RowGroups(setup.group_samples, setup.num_samples),
                                            WindowReaderOptions{.order = setup.order,
                                                                .num_threads = setup.threads,
                                                                .max_held = setup.max_held,
                                                                .num_epochs = setup.num_epochs},
                                            std::make_unique<FakeSource>(script),
                                            ResidentFields{test::as_bytes(labels)}, ring);
  }

  EpochOrder order;
  std::shared_ptr<FakeSource::Script> script = std::make_shared<FakeSource::Script>();
  std::shared_ptr<Ring> ring;
  std::unique_ptr<WindowReader> reader;
};

void expect_batch(const internal::BatchSlot& slot, const std::vector<std::int64_t>& samples) {
  ASSERT_EQ(slot.rows, static_cast<std::int64_t>(samples.size()));
  for (std::size_t row = 0; row < samples.size(); ++row) {
    ASSERT_EQ(slot.sample_ids[row], samples[row]) << "row " << row;
    const auto expected = test::picture(samples[row], kSampleBytes);
    ASSERT_EQ(std::memcmp(slot.images + row * kSampleBytes, expected.data(), expected.size()), 0);
    std::int64_t label = -1;
    std::memcpy(&label, slot.fields[0] + row * 8, 8);
    ASSERT_EQ(label, test::label_of(samples[row]));
  }
}

void expect_epoch(Fixture& fixture, const Case& setup, std::int64_t epoch) {
  const EpochOrder order(RowGroups(setup.group_samples, setup.num_samples), setup.order, epoch);
  fixture.reader->start(epoch);
  for (std::int64_t step = 0; step < order.num_steps(); ++step) {
    const auto slot = fixture.reader->next();
    ASSERT_TRUE(slot) << "epoch " << epoch << " ended at step " << step;
    EXPECT_EQ(slot->epoch, epoch);
    EXPECT_EQ(slot->step, step);
    expect_batch(*slot, order.batch(step));
  }
  EXPECT_FALSE(fixture.reader->next());
  EXPECT_FALSE(fixture.reader->next()) << "the end of an epoch must stay the end";
}

TEST(WindowReader, DeliversTheEpochOrderInEveryMode) {
  for (const OrderMode mode :
       {OrderMode::chunk_shuffled, OrderMode::sequential, OrderMode::random}) {
    for (const std::int64_t threads : {1, 2, 5}) {
      for (const bool drop_last : {false, true}) {
        Case setup;
        setup.order.mode = mode;
        setup.order.drop_last = drop_last;
        setup.threads = threads;
        Fixture fixture(setup);
        SCOPED_TRACE(std::string(to_string(mode)) + " threads " + std::to_string(threads));
        for (std::int64_t epoch = 0; epoch < 3; ++epoch) expect_epoch(fixture, setup, epoch);
      }
    }
  }
}

TEST(WindowReader, DeliversEveryRankAndEnd) {
  for (const Uneven uneven : {Uneven::pad, Uneven::drop, Uneven::exact}) {
    for (const auto& [world_size, lanes] : std::vector<std::pair<std::int64_t, std::int64_t>>{
             {1, 1}, {1, 4}, {2, 4}, {4, 4}, {1, 8}}) {
      for (std::int64_t rank = 0; rank < world_size; ++rank) {
        for (const std::int64_t num_samples : {41, 97, 103, 120}) {
          Case setup;
          setup.num_samples = num_samples;
          setup.order.uneven = uneven;
          setup.order.world_size = world_size;
          setup.order.rank = rank;
          setup.order.lanes = lanes;
          Fixture fixture(setup);
          SCOPED_TRACE(std::string(to_string(uneven)) + " rank " + std::to_string(rank) + "/" +
                       std::to_string(world_size) + " lanes " + std::to_string(lanes) + " N " +
                       std::to_string(num_samples));
          for (std::int64_t epoch = 0; epoch < 2; ++epoch) expect_epoch(fixture, setup, epoch);
        }
      }
    }
  }
}

TEST(WindowReader, RandomSetups) {
  const std::uint64_t seed = test::test_seed();
  std::mt19937_64 random(seed);
  const auto draw = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  for (int round = 0; round < 60; ++round) {
    Case setup;
    setup.num_samples = draw(1, 300);
    setup.group_samples = draw(1, 40);
    setup.order.seed = random();
    setup.order.window_groups = draw(1, 12);
    setup.order.lanes = draw(1, std::min<std::int64_t>(setup.num_samples, 4));
    setup.order.batch_size = setup.order.lanes * draw(1, 20);
    setup.order.drop_last = draw(0, 1) == 1;
    setup.order.uneven = draw(0, 1) == 1 ? Uneven::pad : Uneven::drop;
    setup.threads = draw(1, 4);
    SCOPED_TRACE("seed " + std::to_string(seed) + " round " + std::to_string(round));
    Fixture fixture(setup);
    for (std::int64_t epoch = 0; epoch < 2; ++epoch) expect_epoch(fixture, setup, epoch);
  }
}

TEST(WindowReader, JumpsBetweenEpochs) {
  const Case setup;
  Fixture fixture(setup);
  for (const std::int64_t epoch : {3, 0, 0, 7, 8}) {
    fixture.reader->start(epoch);
    const EpochOrder order(RowGroups(setup.group_samples, setup.num_samples), setup.order, epoch);
    for (std::int64_t step = 0; step < 3; ++step) {
      const auto slot = fixture.reader->next();
      ASSERT_TRUE(slot);
      expect_batch(*slot, order.batch(step));
    }
  }
  expect_epoch(fixture, setup, 8);
}

TEST(WindowReader, VisitsEachGroupOnceAnEpochAndNothingBeyondTheLast) {
  Case setup;
  setup.num_epochs = 2;
  Fixture fixture(setup);
  for (std::int64_t epoch = 0; epoch < 2; ++epoch) expect_epoch(fixture, setup, epoch);
  const std::int64_t groups = RowGroups(setup.group_samples, setup.num_samples).num_groups();
  for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
    const LoaderStats stats = fixture.reader->epoch_stats(epoch);
    EXPECT_EQ(stats.chunk_loads, groups);
    EXPECT_EQ(stats.images, setup.num_samples);
    EXPECT_EQ(stats.batches, fixture.order.num_steps());
    EXPECT_EQ(stats.bytes_read, setup.num_samples * kSampleBytes);
    EXPECT_EQ(stats.bytes_delivered, setup.num_samples * kSampleBytes);
  }
  EXPECT_EQ(fixture.reader->stats().chunk_loads, 2 * groups);
  EXPECT_EQ(fixture.script->calls, 2 * groups);
}

TEST(WindowReader, PrefetchesTheNextEpochWhileOneDrains) {
  const Case setup;
  Fixture fixture(setup);
  expect_epoch(fixture, setup, 0);
  const std::int64_t groups = RowGroups(setup.group_samples, setup.num_samples).num_groups();
  while (fixture.script->calls <= groups) std::this_thread::yield();
  expect_epoch(fixture, setup, 1);
  EXPECT_EQ(fixture.reader->epoch_stats(1).chunk_loads, groups);
}

TEST(WindowReader, HeldBatchIsNeverOverwritten) {
  const Case setup;
  Fixture fixture(setup);
  fixture.reader->start(0);
  const auto held = fixture.reader->next();
  const std::vector<std::int64_t> samples = fixture.order.batch(0);
  for (std::int64_t epoch = 0; epoch < 5; ++epoch) {
    if (epoch > 0) fixture.reader->start(epoch);
    while (fixture.reader->next()) {
    }
    expect_batch(*held, samples);
  }
}

TEST(WindowReader, HoldingTooManyIsAnErrorAndReleasingHeals) {
  Case setup;
  setup.max_held = 2;
  Fixture fixture(setup);
  fixture.reader->start(0);
  auto first = fixture.reader->next();
  auto second = fixture.reader->next();
  const auto copy = second;
  try {
    (void)fixture.reader->next();
    FAIL() << "a third batch was handed out";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::out_of_resources);
    EXPECT_NE(std::string(error.what()).find("max_held"), std::string::npos);
  }
  second.reset();  // `copy` still holds it
  EXPECT_THROW((void)fixture.reader->next(), Error);
  first.reset();
  const auto third = fixture.reader->next();
  ASSERT_TRUE(third);
  expect_batch(*third, fixture.order.batch(2));
}

TEST(WindowReader, BatchOutlivesItsReader) {
  const Case setup;
  auto fixture = std::make_unique<Fixture>(setup);
  fixture->reader->start(0);
  const auto held = fixture->reader->next();
  const std::vector<std::int64_t> samples = fixture->order.batch(0);
  fixture.reset();
  expect_batch(*held, samples);
}

TEST(WindowReader, ErrorOfAnyCallReachesTheConsumerAndStays) {
  const Case setup;
  const std::int64_t calls = 2 * RowGroups(setup.group_samples, setup.num_samples).num_groups();
  for (std::int64_t fail_at = 0; fail_at < calls; ++fail_at) {
    Fixture fixture(setup);
    fixture.script->fail_at = fail_at;
    std::string message;
    const EpochOrder order1(RowGroups(setup.group_samples, setup.num_samples), setup.order, 1);
    try {
      for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
        fixture.reader->start(epoch);
        std::int64_t step = 0;
        while (const auto slot = fixture.reader->next()) {
          if (epoch < 2) expect_batch(*slot, (epoch == 0 ? fixture.order : order1).batch(step++));
        }
      }
    } catch (const Error& error) {
      message = error.what();
    }
    EXPECT_EQ(message, "call " + std::to_string(fail_at));
    EXPECT_THROW((void)fixture.reader->next(), Error);
    EXPECT_THROW(fixture.reader->start(0), Error);
  }
}

TEST(WindowReader, CanBeDestroyedAtAnyMoment) {
  std::mt19937_64 random(test::test_seed());
  for (int round = 0; round < 300; ++round) {
    Case setup;
    setup.threads = static_cast<std::int64_t>(random() % 4 + 1);
    Fixture fixture(setup);
    fixture.script->delay = std::chrono::microseconds(random() % 50);
    if (random() % 8 == 0) fixture.script->fail_at = static_cast<std::int64_t>(random() % 20);
    std::vector<std::shared_ptr<const internal::BatchSlot>> held;
    try {
      const std::uint64_t batches = random() % 20;
      if (random() % 8 != 0) fixture.reader->start(0);
      for (std::uint64_t i = 0; i < batches; ++i) {
        auto slot = fixture.reader->next();
        if (!slot) fixture.reader->start(1);
        if (random() % 2 == 0) held.assign(1, std::move(slot));
      }
    } catch (const Error&) {
      // A scripted failure, or next() before start(): both must leave it destroyable.
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 200));
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

TEST(WindowReader, NextBeforeStartIsAnError) {
  Fixture fixture{Case{}};
  EXPECT_THROW((void)fixture.reader->next(), Error);
  EXPECT_THROW(fixture.reader->start(-1), Error);
  EXPECT_THROW(fixture.reader->start(std::numeric_limits<std::int64_t>::max()), Error);
}

TEST(WindowReader, EpochWithoutAFullBatchIsEmptyWithDropLast) {
  Case setup;
  setup.num_samples = 5;
  setup.order.drop_last = true;
  Fixture fixture(setup);
  fixture.reader->start(0);
  EXPECT_FALSE(fixture.reader->next());
  EXPECT_EQ(fixture.script->calls, 0);
}

}  // namespace
}  // namespace chunkio::pipeline
