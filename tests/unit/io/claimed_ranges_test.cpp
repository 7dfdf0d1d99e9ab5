#include "io/claimed_ranges.hpp"

#include <atomic>
#include <chrono>
#include <stop_token>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace chunkio::io {
namespace {

TEST(ClaimedRanges, RangesThatDoNotMeetAreClaimedAtOnce) {
  ClaimedRanges ranges;
  const auto first = ranges.claim({0, 10}, {});
  const auto second = ranges.claim({10, 20}, {});
  EXPECT_TRUE(first);
  EXPECT_TRUE(second);
}

TEST(ClaimedRanges, WhoMeetsAnotherWaitsAndLooksAgain) {
  ClaimedRanges ranges;
  auto first = ranges.claim({5, 15}, {});
  ASSERT_TRUE(first);
  std::atomic<bool> done = false;
  std::jthread waiting([&] {
    EXPECT_FALSE(ranges.claim({14, 30}, {}));
    EXPECT_TRUE(done);
    EXPECT_TRUE(ranges.claim({14, 30}, {}));
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  done = true;
  first.reset();
}

TEST(ClaimedRanges, WaitingEndsWithItsStopToken) {
  ClaimedRanges ranges;
  const auto first = ranges.claim({0, 10}, {});
  std::stop_source stop;
  std::jthread waiting([&] { EXPECT_FALSE(ranges.claim({0, 10}, stop.get_token())); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  stop.request_stop();
  waiting.join();
  EXPECT_TRUE(first);
}

TEST(ClaimedRanges, NoTwoThreadsHaveTheSame) {
  ClaimedRanges ranges;
  std::vector<std::atomic<int>> holders(64);
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 2000; ++i) {
        const std::int64_t begin = (i * 7 + thread * 13) % 60;
        const auto claim = ranges.claim({begin, begin + 4}, {});
        if (!claim) continue;
        for (std::int64_t at = begin; at < begin + 4; ++at) {
          EXPECT_EQ(++holders[static_cast<std::size_t>(at)], 1);
        }
        for (std::int64_t at = begin; at < begin + 4; ++at) {
          --holders[static_cast<std::size_t>(at)];
        }
      }
    });
  }
}

}  // namespace
}  // namespace chunkio::io
