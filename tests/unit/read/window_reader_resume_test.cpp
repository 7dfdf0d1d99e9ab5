// Starting in the middle of an epoch, and telling the sources what comes.

#include <chrono>
#include <cstddef>
#include <map>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "read/window_reader.hpp"
#include "support/errors.hpp"
#include "support/scratch.hpp"
#include "support/window_reader_fixture.hpp"

namespace chunkio::read {
namespace {

using Event = test::SourceScript::Event;

TEST(WindowReaderResume, ContinuesAtEveryStepOfEveryOrder) {
  for (const OrderMode mode :
       {OrderMode::chunk_shuffled, OrderMode::sequential, OrderMode::random}) {
    for (const Uneven uneven : {Uneven::pad, Uneven::drop, Uneven::exact}) {
      for (const bool drop_last : {false, true}) {
        if (drop_last && uneven == Uneven::exact) continue;
        for (const auto& [world_size, lanes] :
             std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 1}, {1, 4}, {2, 4}}) {
          Case setup;
          setup.order.mode = mode;
          setup.order.uneven = uneven;
          setup.order.drop_last = drop_last;
          setup.order.world_size = world_size;
          setup.order.rank = world_size - 1;
          setup.order.lanes = lanes;
          SCOPED_TRACE(std::string(to_string(mode)) + " " + std::string(to_string(uneven)) +
                       " lanes " + std::to_string(lanes) + " of " + std::to_string(world_size));
          const std::int64_t num_steps = setup.order_of(0).num_steps();
          for (std::int64_t step = 0; step <= num_steps; ++step) {
            SCOPED_TRACE("step " + std::to_string(step));
            setup.threads = 1 + step % 3;
            Fixture fixture(setup);
            fixture.reader->start(1, step);
            EXPECT_EQ(fixture.reader->position().epoch, 1);
            EXPECT_EQ(fixture.reader->position().step, step);
            expect_rest(fixture, setup, 1, step);
            expect_epoch(fixture, setup, 2);
          }
        }
      }
    }
  }
}

TEST(WindowReaderResume, JumpsAnywhere) {
  Case setup;
  setup.masks = true;
  setup.order.lanes = 2;
  Fixture fixture(setup);
  const std::int64_t num_steps = fixture.order.num_steps();
  for (const auto& [epoch, step] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {0, 5}, {0, 2}, {7, num_steps - 1}, {7, num_steps}, {8, 0}, {3, 1}, {3, 1}}) {
    fixture.reader->start(epoch, step);
    const EpochOrder order = setup.order_of(epoch);
    for (std::int64_t t = step; t < std::min(step + 3, num_steps); ++t) {
      const auto slot = fixture.reader->next();
      ASSERT_TRUE(slot);
      EXPECT_EQ(slot->step, t);
      expect_batch(*slot, order.batch(t));
    }
  }
  test::expect_error(ErrorCode::invalid_argument, {"step", std::to_string(num_steps)},
                     [&] { fixture.reader->start(0, num_steps + 1); });
  test::expect_error(ErrorCode::invalid_argument, {"step"}, [&] { fixture.reader->start(0, -1); });
}

TEST(WindowReaderResume, WhereItStandsAlreadyNothingIsReadAgain) {
  Case setup;
  setup.num_epochs = 2;
  Fixture fixture(setup);
  fixture.reader->start(0);
  for (int i = 0; i < 4; ++i) (void)fixture.reader->next();
  fixture.reader->start(0, 4);
  expect_rest(fixture, setup, 0, 4);
  const LoaderStats stats = fixture.reader->epoch_stats(0);
  EXPECT_EQ(stats.batches, fixture.order.num_steps());
  EXPECT_GE(stats.seconds, stats.stall_seconds) << "counted from the same moment";
  fixture.reader->start(0, fixture.order.num_steps());  // its end
  EXPECT_FALSE(fixture.reader->next());
  expect_epoch(fixture, setup, 1);
  EXPECT_EQ(fixture.script->calls, 2 * setup.groups().num_groups());
}

TEST(WindowReaderResume, AtTheEndOfAnEpochTheNextIsPrefetched) {
  Case setup;
  setup.num_epochs = 2;
  Fixture fixture(setup);
  fixture.reader->start(0, fixture.order.num_steps());
  EXPECT_FALSE(fixture.reader->next());
  while (fixture.script->calls == 0) std::this_thread::yield();
  expect_epoch(fixture, setup, 1);
  EXPECT_EQ(fixture.script->calls, setup.groups().num_groups()) << "epoch 0 must not be read";
}

TEST(WindowReaderResume, ReadsOnlyWhatIsStillToBeDelivered) {
  Case setup;
  setup.threads = 1;
  setup.num_epochs = 1;
  setup.num_samples = 400;
  setup.order.lanes = 2;
  const EpochOrder order = setup.order_of(0);
  for (const std::int64_t step : {0, 1, 20, 37, 49}) {
    Fixture fixture(setup);
    fixture.reader->start(0, step);
    expect_rest(fixture, setup, 0, step);
    // Groups of which a row is delivered from there on, once for each lane and window.
    std::int64_t expected = 0;
    for (std::int64_t lane = 0; lane < 2; ++lane) {
      const std::int64_t index = step * plan::lane_batch(order);
      for (std::int64_t window = plan::window_of(order, lane, index);
           window < plan::num_windows(order, lane); ++window) {
        plan::WindowPlan plan;
        plan::plan_window(order, lane, window, plan);
        plan::drop_before(plan, index);
        expected += static_cast<std::int64_t>(plan.reads.size());
      }
    }
    EXPECT_EQ(fixture.script->calls, expected) << "from step " << step;
  }
}

// ---- what the sources are told ahead ----

TEST(WindowReaderAhead, EveryGroupIsPrefetchedOnceBeforeItIsPlaced) {
  for (const OrderMode mode : {OrderMode::chunk_shuffled, OrderMode::sequential}) {
    for (const std::int64_t lanes : {1, 4}) {
      Case setup;
      setup.order.mode = mode;
      setup.order.lanes = lanes;
      setup.order.uneven = Uneven::pad;  // the last read of a lane may be a repetition
      setup.num_samples = 97;
      setup.masks = true;
      setup.threads = 1;  // so that the order of calls is that of the work
      setup.num_epochs = 1;
      Fixture fixture(setup);
      expect_epoch(fixture, setup, 0);

      for (const bool mask : {false, true}) {
        std::map<std::int64_t, std::int64_t> prefetched;
        std::map<std::int64_t, std::int64_t> placed;
        for (const Event& event : fixture.script->events()) {
          if (event.mask != mask) continue;
          ++(event.placed ? placed : prefetched)[event.first_row];
          if (event.placed) {
            EXPECT_GE(prefetched[event.first_row], 1) << "row " << event.first_row;
          }
        }
        EXPECT_EQ(static_cast<std::int64_t>(prefetched.size()), setup.groups().num_groups());
        for (const auto& [first_row, times] : prefetched) {
          // A lane's end may cut a group, which is then read from two windows, and padded.
          EXPECT_LE(times, placed[first_row]);
          if (lanes == 1) {
            EXPECT_EQ(times, 1) << "row " << first_row;
          }
        }
      }
    }
  }
}

TEST(WindowReaderAhead, EachPrefetchIsForOneGroupReadWhateverWasGivenUpBefore) {
  Case setup;
  setup.num_samples = 97;
  setup.masks = true;
  setup.threads = 4;
  setup.num_epochs = 1;
  Fixture fixture(setup);
  // So that group reads could overtake their prefetches, and epochs are given up meanwhile.
  fixture.script->at_prefetch = [] { std::this_thread::sleep_for(std::chrono::microseconds(300)); };
  const auto script = fixture.script;
  for (std::int64_t epoch = 0; epoch < 20; ++epoch) {
    fixture.reader->start(epoch);
    if (epoch % 2 == 0) {
      ASSERT_TRUE(fixture.reader->next());
    }
  }
  fixture.reader->start(20);
  const std::size_t before = script->events().size();
  expect_epoch(fixture, setup, 20);
  // What belongs to a group read goes with it.
  EXPECT_EQ(script->prefetched, 0);
  const std::vector<Event> events = script->events();
  for (const bool mask : {false, true}) {
    std::map<std::int64_t, std::int64_t> prefetched;
    std::map<std::int64_t, std::int64_t> placed;
    for (std::size_t i = before; i < events.size(); ++i) {
      if (events[i].mask != mask) continue;
      if (!events[i].placed) ++prefetched[events[i].first_row];
      if (events[i].prefetched) ++placed[events[i].first_row];
      if (events[i].placed) {
        EXPECT_TRUE(events[i].prefetched) << events[i].first_row;
      }
    }
    EXPECT_EQ(static_cast<std::int64_t>(prefetched.size()), setup.groups().num_groups());
    EXPECT_EQ(prefetched, placed);
  }
  // What was prefetched and not read goes with the reader.
  setup.num_epochs = 40;
  Fixture abandoned(setup);
  const auto others = abandoned.script;
  abandoned.reader->start(0);
  ASSERT_TRUE(abandoned.reader->next());
  abandoned.reader.reset();
  EXPECT_EQ(others->prefetched, 0);
}

TEST(WindowReaderAhead, RandomOrderIsNotPrefetched) {
  Case setup;
  setup.order.mode = OrderMode::random;
  Fixture fixture(setup);
  expect_epoch(fixture, setup, 0);
  for (const Event& event : fixture.script->events()) ASSERT_TRUE(event.placed);
}

class WindowReaderReach : public testing::TestWithParam<std::int64_t> {};

TEST_P(WindowReaderReach, IsThatOfItsBytes) {
  Case setup;
  // One row of each of 40 groups of 2.4 MB.
  setup.group_samples = 100'000;
  setup.num_samples = 40 * setup.group_samples;
  std::vector<std::int64_t> rows;
  for (std::int64_t group = 0; group < 40; ++group) rows.push_back(group * 100'000 + 7 * group);
  setup.rows = RowSelection::of(rows);
  setup.order.batch_size = 10;
  setup.order.window_groups = 40;
  setup.threads = 1;
  setup.num_epochs = 1;
  setup.prefetch_bytes = GetParam();
  Fixture fixture(setup);
  expect_epoch(fixture, setup, 0);

  const std::int64_t group_bytes = setup.group_samples * Fixture::kSampleBytes;
  const std::int64_t most = setup.prefetch_bytes / group_bytes + 1;
  std::int64_t ahead = 0;
  std::int64_t furthest = 0;
  std::int64_t placed = 0;
  for (const Event& event : fixture.script->events()) {
    if (event.placed) {
      // All that may be is on its way when a group read begins.
      EXPECT_EQ(ahead, std::min(most, 40 - placed));
      ++placed;
    } else {
      const std::int64_t group = event.first_row / setup.group_samples;
      EXPECT_EQ(event.wanted, (RowRange{rows[static_cast<std::size_t>(group)],
                                        rows[static_cast<std::size_t>(group)] + 1}));
    }
    ahead += event.placed ? -1 : 1;
    furthest = std::max(furthest, ahead);
  }
  EXPECT_EQ(placed, 40);
  EXPECT_EQ(furthest, most);
}

INSTANTIATE_TEST_SUITE_P(Prefetching, WindowReaderReach,
                         testing::Values(WindowScheduler::kPrefetchBytes, 80'000'000));

}  // namespace
}  // namespace chunkio::read
