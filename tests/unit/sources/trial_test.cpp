#include "sources/trial.hpp"

#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace chunkio::sources {
namespace {

constexpr TrialLimits kLimits{.turn_bytes = 100, .num_turns = 3};

/// Does `count` pieces of 50 bytes, of which way w takes seconds[w] each. \returns the ways.
std::vector<std::size_t> work(Trial& trial, std::size_t count, const std::vector<double>& seconds) {
  std::vector<std::size_t> ways;
  for (std::size_t i = 0; i < count; ++i) {
    const Trial::Share share = trial.begin(50);
    ways.push_back(share.way);
    trial.end(share, 50, seconds[share.way]);
  }
  return ways;
}

TEST(TrialTest, WaysHaveTurnsAndTheFastestStays) {
  Trial trial({"a", "b", "c"}, kLimits);
  EXPECT_EQ(trial.choice(), 0U);
  EXPECT_EQ(work(trial, 17, {1.0, 0.8, 0.9}),
            (std::vector<std::size_t>{0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2}));
  EXPECT_FALSE(trial.settled());
  (void)work(trial, 1, {1.0, 0.8, 0.9});
  EXPECT_TRUE(trial.settled());
  EXPECT_EQ(trial.choice(), 1U);
  EXPECT_EQ(work(trial, 2, {1.0, 5.0, 0.9}), (std::vector<std::size_t>{1, 1}));
}

TEST(TrialTest, WhatIsNotFasterByTheMarginIsNoReasonToChange) {
  Trial near({"a", "b"}, kLimits);
  (void)work(near, 12, {1.04, 1.0});
  EXPECT_TRUE(near.settled());
  EXPECT_EQ(near.choice(), 0U);
  Trial far({"a", "b"}, kLimits);
  (void)work(far, 12, {1.06, 1.0});
  EXPECT_EQ(far.choice(), 1U);
}

TEST(TrialTest, ADisturbedTurnDecidesNothing) {
  Trial trial({"a", "b"}, kLimits);
  (void)work(trial, 4, {1.0, 0.5});
  (void)work(trial, 4, {1.0, 100.0});
  (void)work(trial, 4, {1.0, 0.5});
  EXPECT_EQ(trial.choice(), 1U);
}

TEST(TrialTest, WhatIsSlowerThanTheFirstHasNoMoreTurns) {
  Trial trial({"a", "b", "c"}, kLimits);
  EXPECT_EQ(work(trial, 14, {1.0, 1.1, 0.9}),
            (std::vector<std::size_t>{0, 0, 1, 1, 2, 2, 0, 0, 2, 2, 0, 0, 2, 2}));
  EXPECT_TRUE(trial.settled());
  EXPECT_EQ(trial.choice(), 2U);
  Trial alone({"a", "b"}, kLimits);
  EXPECT_EQ(work(alone, 5, {1.0, 1.1}), (std::vector<std::size_t>{0, 0, 1, 1, 0}));
  EXPECT_TRUE(alone.settled());
  EXPECT_TRUE(alone.drop(0));
  EXPECT_EQ(alone.choice(), 1U) << "slow, but it works";
}

TEST(TrialTest, WhatCannotBeToldApartStaysAsItIs) {
  Trial trial({"a", "b"}, {.turn_bytes = 100, .num_turns = 1});
  EXPECT_EQ(trial.describe(), "to be tried: a, b");
  EXPECT_EQ(work(trial, 4, {1.0, 0.97}), (std::vector<std::size_t>{0, 0, 1, 1}));
  EXPECT_TRUE(trial.settled());
  EXPECT_EQ(trial.choice(), 0U);
}

TEST(TrialTest, SettlesOnceTheLastOfWhatRunsIsDone) {
  Trial trial({"a", "b"}, {.turn_bytes = 100, .num_turns = 1});
  const Trial::Share slow = trial.begin(100);
  const Trial::Share fast = trial.begin(100);
  EXPECT_EQ(slow.way, 0U);
  EXPECT_EQ(fast.way, 1U);
  trial.end(fast, 100, 1.0);
  const Trial::Share extra = trial.begin(100);
  EXPECT_EQ(extra.way, 0U);
  EXPECT_FALSE(extra.turn);
  trial.end(extra, 100, 1000.0);
  EXPECT_FALSE(trial.settled());
  trial.end(slow, 100, 2.0);
  EXPECT_TRUE(trial.settled());
  EXPECT_EQ(trial.choice(), 1U);
}

TEST(TrialTest, WhatIsGivenUpTakesPartInNothing) {
  Trial trial({"a", "b"}, {.turn_bytes = 100, .num_turns = 1});
  const Trial::Share first = trial.begin(100);
  const Trial::Share second = trial.begin(100);
  EXPECT_EQ(second.way, 1U);
  trial.give_up(first, 100);
  trial.end(second, 100, 1.0);
  EXPECT_FALSE(trial.settled()) << "nothing is known of the first way";
  EXPECT_EQ(work(trial, 2, {2.0, 1.0}), (std::vector<std::size_t>{0, 0}));
  EXPECT_TRUE(trial.settled());
  EXPECT_EQ(trial.choice(), 1U);
}

TEST(TrialTest, WhatIsDroppedIsNeverUsedAgainAndTheLastCannotBe) {
  Trial trial({"a", "b", "c"}, kLimits);
  EXPECT_TRUE(trial.drop(0));
  EXPECT_EQ(trial.choice(), 1U);
  EXPECT_EQ(work(trial, 4, {0.1, 1.0, 2.0}), (std::vector<std::size_t>{1, 1, 2, 2}));
  EXPECT_TRUE(trial.drop(2));
  EXPECT_TRUE(trial.settled());
  EXPECT_EQ(trial.choice(), 1U);
  EXPECT_FALSE(trial.drop(1));
  EXPECT_NE(trial.describe().find("a (failed)"), std::string::npos) << trial.describe();
}

TEST(TrialTest, SaysWhatWasMeasured) {
  Trial trial({"a", "b"}, {.turn_bytes = 100, .num_turns = 1});
  (void)work(trial, 1, {10e-9, 4e-9});
  EXPECT_EQ(trial.describe(), "to be tried: a, b");
  (void)work(trial, 1, {10e-9, 4e-9});
  EXPECT_EQ(trial.describe(), "being tried: a 5.0, b (not yet) GB/s a thread");
  (void)work(trial, 2, {10e-9, 4e-9});
  EXPECT_EQ(trial.describe(), "tried: a 5.0, b 12.5 GB/s a thread; in use: b");
  EXPECT_EQ(Trial({"alone"}, kLimits).describe(), "");
  EXPECT_TRUE(Trial({"alone"}, kLimits).settled());
}

TEST(TrialTest, ThreadsSettleIt) {
  Trial trial({"a", "b", "c"}, {.turn_bytes = 1000, .num_turns = 3});
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] { (void)work(trial, 200, {1.0, 2.0, 0.5}); });
  }
  threads.clear();
  EXPECT_TRUE(trial.settled());
  EXPECT_EQ(trial.choice(), 2U);
}

}  // namespace
}  // namespace chunkio::sources
