// What goes wrong while windows are in flight: errors, damage that is skipped, destruction.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <random>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "read/window_reader.hpp"
#include "support/errors.hpp"
#include "support/scratch.hpp"
#include "support/window_reader_fixture.hpp"

namespace chunkio::read {
namespace {

TEST(WindowReaderFault, ErrorOfAnyCallReachesTheConsumerAndStays) {
  const Case setup;
  const std::int64_t calls = 2 * setup.groups().num_groups();
  for (std::int64_t fail_at = 0; fail_at < calls; ++fail_at) {
    Fixture fixture(setup);
    fixture.script->fail_at = fail_at;
    std::string message;
    const EpochOrder order1 = setup.order_of(1);
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

TEST(WindowReaderFault, CanBeDestroyedAtAnyMoment) {
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

TEST(WindowReaderFault, DelayOfAnyCallChangesNothing) {
  Case setup;
  setup.num_epochs = 1;
  for (std::int64_t slow = 0; slow < setup.groups().num_groups(); ++slow) {
    Fixture fixture(setup);
    fixture.script->at_call = [slow](std::int64_t call) {
      if (call == slow) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    };
    expect_epoch(fixture, setup, 0);
  }
}

TEST(WindowReaderFault, JumpDuringAnyCallStartsAnew) {
  const Case setup;
  const EpochOrder order = setup.order_of(4);
  for (std::int64_t at = 0; at < setup.groups().num_groups(); ++at) {
    std::atomic<bool> reached{false};
    Fixture fixture(setup);
    fixture.script->at_call = [&](std::int64_t call) {
      if (call != at) return;
      reached = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    };
    fixture.reader->start(0);
    while (!reached) {
      // The first calls come by themselves, later ones when the consumer makes room.
      if (!fixture.reader->next()) break;
    }
    fixture.reader->start(4, 1);
    for (std::int64_t step = 1; step < 4; ++step) {
      const auto slot = fixture.reader->next();
      ASSERT_TRUE(slot);
      expect_batch(*slot, order.batch(step));
    }
  }
}

/// Batches of an epoch without damaged rows.
void expect_epoch_without_rows(Fixture& fixture, const Case& setup, std::int64_t epoch,
                               const std::function<bool(std::int64_t row)>& damaged) {
  const EpochOrder order = setup.order_of(epoch);
  std::int64_t skipped = 0;
  std::int64_t delivered = 0;
  fixture.reader->start(epoch);
  for (std::int64_t step = 0; step < order.num_steps(); ++step) {
    std::vector<std::int64_t> samples = order.batch(step);
    skipped += static_cast<std::int64_t>(std::erase_if(samples, damaged));
    delivered += static_cast<std::int64_t>(samples.size());
    const auto slot = fixture.reader->next();
    ASSERT_TRUE(slot) << "an empty batch is a batch, too";
    EXPECT_EQ(slot->step, step);
    expect_batch(*slot, samples);
  }
  EXPECT_FALSE(fixture.reader->next());
  const LoaderStats stats = fixture.reader->epoch_stats(epoch);
  EXPECT_EQ(stats.skipped_images, skipped);
  EXPECT_EQ(stats.images, delivered);
  EXPECT_EQ(stats.batches, order.num_steps());
}

/// The same of damaged groups.
void expect_epoch_without(Fixture& fixture, const Case& setup, std::int64_t epoch,
                          const std::function<bool(std::int64_t first_row)>& damaged) {
  expect_epoch_without_rows(fixture, setup, epoch, [&](std::int64_t row) {
    return damaged(row - row % setup.group_samples);
  });
}

TEST(WindowReaderFault, SkippedRowsLeaveNoHoles) {
  // The group of rows 21 to 27, the last and short one, and none.
  const std::vector<std::function<bool(std::int64_t)>> damages = {
      [](std::int64_t first_row) { return first_row == 21 || first_row == 98; },
      [](std::int64_t first_row) { return first_row % 2 == 0; }, [](std::int64_t) { return true; },
      [](std::int64_t) { return false; }};
  for (const OrderMode mode :
       {OrderMode::chunk_shuffled, OrderMode::sequential, OrderMode::random}) {
    for (const Uneven uneven : {Uneven::pad, Uneven::drop, Uneven::exact}) {
      for (const std::int64_t lanes : {1, 4}) {
        for (const auto& damaged : damages) {
          for (const bool in_mask : {false, true}) {
            Case setup;
            setup.on_error = OnError::skip;
            setup.masks = in_mask;
            setup.order.mode = mode;
            setup.order.uneven = uneven;
            setup.order.lanes = lanes;
            Fixture fixture(setup);
            fixture.script->damaged = [&](std::int64_t first_row, bool mask) {
              return mask == in_mask && damaged(first_row);
            };
            for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
              expect_epoch_without(fixture, setup, epoch, damaged);
            }
            const std::vector<SkippedRows> skipped = fixture.reader->skipped();
            std::vector<std::int64_t> expected;
            for (std::int64_t row = 0; row < setup.num_samples; row += setup.group_samples) {
              if (damaged(row)) expected.push_back(row);
            }
            ASSERT_EQ(skipped.size(), expected.size()) << "each group once";
            for (std::size_t i = 0; i < skipped.size(); ++i) {
              EXPECT_EQ(skipped[i].first_row, expected[i]);
              EXPECT_EQ(skipped[i].num_rows,
                        std::min(setup.group_samples, setup.num_samples - expected[i]));
              EXPECT_EQ(skipped[i].reason.substr(0, 5), "call ");
            }
          }
        }
      }
    }
  }
}

TEST(WindowReaderFault, OnlyRowsThatDoNotMatchAreSkipped) {
  const auto damaged = [](std::int64_t row) {
    return row == 0 || (row >= 20 && row < 23) || row % 31 == 7 || row == 99;
  };
  for (const OrderMode mode :
       {OrderMode::chunk_shuffled, OrderMode::sequential, OrderMode::random}) {
    for (const std::int64_t lanes : {1, 4}) {
      for (const bool in_mask : {false, true}) {
        for (const bool selection : {false, true}) {
          SCOPED_TRACE(std::string(to_string(mode)) + " lanes " + std::to_string(lanes) +
                       (in_mask ? " mask" : "") + (selection ? " selection" : ""));
          Case setup;
          setup.on_error = OnError::skip;
          setup.masks = true;
          setup.order.mode = mode;
          setup.order.lanes = lanes;
          setup.order.uneven = Uneven::exact;
          // Row 20 is not wanted, rows 21 and 22 are.
          if (selection) setup.rows = RowSelection({{0, 20}, {21, 69}, {70, 100}});
          Fixture fixture(setup);
          fixture.script->mismatched = [&](std::int64_t row, bool mask) {
            return mask == in_mask && damaged(row);
          };
          for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
            expect_epoch_without_rows(fixture, setup, epoch, damaged);
          }
          std::vector<std::int64_t> rows;
          std::int64_t selected = 0;
          for (const SkippedRows& run : fixture.reader->skipped()) {
            EXPECT_EQ(run.reason.find("mismatch in chunk " + std::to_string(run.first_row / 14)),
                      0U)
                << run.reason;
            selected += run.num_selected;
            for (std::int64_t i = 0; i < run.num_rows; ++i) rows.push_back(run.first_row + i);
          }
          std::vector<std::int64_t> expected{0, 7, 20, 21, 22, 38, 69, 99};
          if (selection) expected = {0, 7, 21, 22, 38, 99};
          EXPECT_EQ(rows, expected);
          EXPECT_EQ(selected, std::ssize(expected));
          EXPECT_EQ(fixture.reader->epoch_stats(0).skipped_images, selected);
        }
      }
    }
  }
}

TEST(WindowReaderFault, AMismatchIsAnErrorWhereNothingIsSkipped) {
  Fixture fixture(Case{});
  fixture.script->mismatched = [](std::int64_t row, bool) { return row == 50; };
  fixture.reader->start(0);
  test::expect_error(ErrorCode::digest_mismatch, {"mismatch in chunk 3"}, [&] { fixture.drain(); });
}

TEST(WindowReaderFault, RowsThatWereSkippedBeforeKeepTheirReason) {
  Case setup;
  setup.on_error = OnError::skip;
  setup.order.mode = OrderMode::sequential;
  Fixture fixture(setup);
  std::atomic<bool> unreadable{false};
  fixture.script->mismatched = [](std::int64_t row, bool) { return row == 23 || row == 25; };
  fixture.script->damaged = [&](std::int64_t first_row, bool) {
    return unreadable && first_row == 21;
  };
  fixture.reader->start(0);
  fixture.drain();
  unreadable = true;
  fixture.reader->start(5);  // which is not prefetched yet
  fixture.drain();
  std::vector<std::pair<std::int64_t, std::int64_t>> runs;
  std::vector<bool> mismatches;
  for (const SkippedRows& run : fixture.reader->skipped()) {
    runs.emplace_back(run.first_row, run.num_rows);
    mismatches.push_back(run.reason.starts_with("mismatch"));
  }
  EXPECT_EQ(runs, (std::vector<std::pair<std::int64_t, std::int64_t>>{
                      {21, 2}, {23, 1}, {24, 1}, {25, 1}, {26, 2}}));
  EXPECT_EQ(mismatches, (std::vector<bool>{false, true, false, true, false}));
}

TEST(WindowReaderFault, SkippedGroupsSayHowManyOfTheirRowsWereSelected) {
  for (const OrderMode mode : {OrderMode::chunk_shuffled, OrderMode::sequential}) {
    Case setup;
    setup.on_error = OnError::skip;
    setup.order.mode = mode;
    std::vector<std::int64_t> rows;
    for (std::int64_t row = 0; row < setup.num_samples; row += row % 5 + 1) rows.push_back(row);
    setup.rows = RowSelection::of(rows);
    Fixture fixture(setup);
    fixture.script->damaged = [](std::int64_t first_row, bool) { return first_row % 2 == 0; };
    fixture.reader->start(0);
    fixture.drain();
    std::int64_t selected = 0;
    for (const SkippedRows& skipped : fixture.reader->skipped()) {
      EXPECT_LT(skipped.num_selected, skipped.num_rows);
      selected += skipped.num_selected;
    }
    EXPECT_GT(selected, 0);
    EXPECT_EQ(selected, fixture.reader->epoch_stats(0).skipped_images);
  }
}

TEST(WindowReaderFault, SkippedGroupIsTriedAgainInTheNextEpoch) {
  Case setup;
  setup.on_error = OnError::skip;
  Fixture fixture(setup);
  fixture.script->fail_at = 3;  // once
  fixture.reader->start(0);
  fixture.drain();
  ASSERT_EQ(fixture.reader->skipped().size(), 1U);
  EXPECT_EQ(fixture.reader->epoch_stats(0).skipped_images,
            fixture.reader->skipped().front().num_rows);
  expect_epoch(fixture, setup, 1);
  EXPECT_EQ(fixture.reader->epoch_stats(1).skipped_images, 0);
}

TEST(WindowReaderFault, OnlyDamageOfStoredBytesIsSkipped) {
  for (const auto& [code, skipped] :
       std::vector<std::pair<ErrorCode, bool>>{{ErrorCode::io_failed, true},
                                               {ErrorCode::corrupt_data, true},
                                               {ErrorCode::digest_mismatch, true},
                                               {ErrorCode::hdf5_failed, true},
                                               {ErrorCode::out_of_resources, false},
                                               {ErrorCode::unsupported, false},
                                               {ErrorCode::cancelled, false}}) {
    for (const OnError on_error : {OnError::raise, OnError::skip}) {
      SCOPED_TRACE(std::string(to_string(code)));
      Case setup;
      setup.on_error = on_error;
      setup.num_epochs = 1;
      Fixture fixture(setup);
      fixture.script->fail_at = 0;
      fixture.script->fail_code = code;
      fixture.reader->start(0);
      const auto drain = [&] { fixture.drain(); };
      if (skipped && on_error == OnError::skip) {
        EXPECT_NO_THROW(drain());
        EXPECT_EQ(fixture.reader->skipped().size(), 1U);
      } else {
        test::expect_error(code, {"call 0"}, drain);
        EXPECT_TRUE(fixture.reader->skipped().empty());
      }
    }
  }
}

TEST(WindowReaderFault, NothingIsSkippedOfAFileThatIsBrokenAsAWhole) {
  Case setup;
  setup.on_error = OnError::skip;
  setup.check_whole_file = [] { throw Error(ErrorCode::corrupt_data, "the file was changed"); };
  Fixture fixture(setup);
  fixture.script->fail_at = 1;
  fixture.reader->start(0);
  test::expect_error(ErrorCode::corrupt_data, {"the file was changed"}, [&] { fixture.drain(); });
}

TEST(WindowReaderFault, ReasonsAreCutToTheirBudget) {
  Case setup;
  setup.on_error = OnError::skip;
  setup.num_epochs = 1;
  Fixture fixture(setup);
  fixture.script->at_call = [](std::int64_t call) {
    if (call == 0) throw Error(ErrorCode::io_failed, std::string(5000, 'x'));
  };
  fixture.reader->start(0);
  fixture.drain();
  ASSERT_EQ(fixture.reader->skipped().size(), 1U);
  EXPECT_EQ(fixture.reader->skipped().front().reason.size(), WindowReader::kMaxReasonBytes);
}

}  // namespace
}  // namespace chunkio::read
