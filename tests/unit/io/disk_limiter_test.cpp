#include "io/disk_limiter.hpp"

#include <chrono>
#include <cstdint>
#include <future>
#include <limits>
#include <optional>
#include <stop_token>
#include <string_view>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <chunkio/error.hpp>

#include "support/errors.hpp"

namespace chunkio::io {
namespace {

using Clock = DiskLimiter::Clock;

/// A limiter whose clock stands still until the test moves it.
class DiskLimiterTest : public testing::Test {
 protected:
  void limit(const DiskLimit& limit) {
    limiter_.emplace(limit, [this] { return start_ + std::chrono::nanoseconds(now_); });
  }
  void advance(double seconds) { now_ += static_cast<std::int64_t>(seconds * 1e9); }
  /// Seconds from the start to the completion of a request made now.
  double submit(std::int64_t bytes, std::optional<std::int64_t> file_offset = {}) {
    return std::chrono::duration<double>(limiter_->submit(bytes, file_offset) - start_).count();
  }

  static constexpr double kNear = 1e-8;
  Clock::time_point start_ = Clock::now();
  std::int64_t now_ = 0;
  std::optional<DiskLimiter> limiter_;
};

TEST_F(DiskLimiterTest, WithoutLimitsEverythingIsThereAtOnce) {
  limit({});
  EXPECT_NEAR(submit(1 << 30), 0, kNear);
  advance(2);
  EXPECT_NEAR(submit(1 << 30), 2, kNear);
}

TEST_F(DiskLimiterTest, RequestsShareTheBandwidth) {
  limit({.bytes_per_second = 1000});
  EXPECT_NEAR(submit(500), 0.5, kNear);
  EXPECT_NEAR(submit(250), 0.75, kNear);
  EXPECT_NEAR(submit(0), 0.75, kNear);
  // Half a second was not used, and is lost.
  advance(1.25);
  EXPECT_NEAR(submit(1000), 2.25, kNear);
}

TEST_F(DiskLimiterTest, LatenciesOverlapAsFarAsTheQueueIsDeep) {
  limit({.request_seconds = 0.01});
  for (int i = 0; i < 100; ++i) EXPECT_NEAR(submit(1), 0.01, kNear);
  limit({.request_seconds = 0.01, .queue_depth = 1});
  for (int i = 1; i <= 100; ++i) EXPECT_NEAR(submit(1), 0.01 * i, kNear);
  limit({.request_seconds = 0.01, .queue_depth = 3});
  for (int i = 0; i < 100; ++i) EXPECT_NEAR(submit(1), 0.01 * (i / 3 + 1), kNear);
  // The queue is empty again: three at once.
  advance(1);
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(submit(1), 1.01, kNear);
  EXPECT_NEAR(submit(1), 1.02, kNear);
}

TEST_F(DiskLimiterTest, LatencyComesBeforeTheBytesAndOverlapsThoseOfOthers) {
  limit({.bytes_per_second = 1000, .request_seconds = 0.1});
  EXPECT_NEAR(submit(1000), 1.1, kNear);
  EXPECT_NEAR(submit(1000), 2.1, kNear);  // its latency passed while the first was transferred
  limit({.bytes_per_second = 1000, .request_seconds = 0.1, .queue_depth = 1});
  EXPECT_NEAR(submit(1000), 1.1, kNear);
  EXPECT_NEAR(submit(1000), 2.2, kNear);  // the arm moves only then
}

TEST_F(DiskLimiterTest, WhatBeginsWhereTheLastRequestEndedHasNoLatency) {
  limit({.bytes_per_second = 1000, .request_seconds = 0.1, .queue_depth = 1});
  EXPECT_NEAR(submit(100, 5000), 0.2, kNear);
  EXPECT_NEAR(submit(100, 5100), 0.3, kNear);
  EXPECT_NEAR(submit(100, 5200), 0.4, kNear);
  EXPECT_NEAR(submit(100, 5200), 0.6, kNear);  // again
  EXPECT_NEAR(submit(100), 0.8, kNear);        // somewhere
  EXPECT_NEAR(submit(100, 5300), 1.0, kNear);
  // It never arrives before what it continues.
  limit({.request_seconds = 0.1});
  EXPECT_NEAR(submit(100, 0), 0.1, kNear);
  EXPECT_NEAR(submit(100, 100), 0.1, kNear);
}

TEST_F(DiskLimiterTest, MoreOfTheLastRequestHasNoLatencyAndHoldsItsPlaceInTheQueue) {
  limit({.bytes_per_second = 1000, .request_seconds = 0.1, .queue_depth = 1});
  EXPECT_NEAR(submit(100), 0.2, kNear);
  EXPECT_NEAR(std::chrono::duration<double>(limiter_->submit_more(300) - start_).count(), 0.5,
              kNear);
  EXPECT_NEAR(submit(100), 0.7, kNear);
}

TEST_F(DiskLimiterTest, ProfilesAnswerAsManyRequestsASecondAsTheirSourcesSay) {
  // So small that the bandwidth hardly counts.
  constexpr std::int64_t kBytes = 512;
  const auto requests_per_second = [this](std::string_view name) {
    limit(disk_profile(name));
    constexpr int kRequests = 10'000;
    double end = 0;
    for (int i = 0; i < kRequests; ++i) end = submit(kBytes);
    return kRequests / end;
  };
  EXPECT_NEAR(requests_per_second("hdd"), 79, 1);
  EXPECT_NEAR(requests_per_second("sata-ssd"), 98'000, 5'000);
  EXPECT_NEAR(requests_per_second("nvme"), 600'000, 5'000);
  EXPECT_NEAR(requests_per_second("cloud-volume"), 3'000, 20);
  EXPECT_NEAR(requests_per_second("object-storage"), 320, 2);
}

TEST_F(DiskLimiterTest, TimesBeyondAllClocksAreFarAwayAndDoNotWrapAround) {
  limit({.bytes_per_second = 1});
  for (int i = 0; i < 3; ++i) EXPECT_GE(submit(std::numeric_limits<std::int64_t>::max()), 9e8);
}

TEST(DiskLimiter, RefusesALimitThatNoDiskCanHave) {
  test::expect_error(ErrorCode::invalid_argument, {"bytes_per_second"},
                     [] { DiskLimiter({.bytes_per_second = -1}); });
}

TEST(DiskLimiter, WaitsForTheBytes) {
  DiskLimiter limiter({.bytes_per_second = 1e6});
  const auto start = Clock::now();
  EXPECT_TRUE(limiter.transfer(10'000, {}));
  EXPECT_GE(Clock::now() - start, std::chrono::milliseconds(10));
}

TEST(DiskLimiter, ThreadsTogetherAreNotFasterThanTheDisk) {
  DiskLimiter limiter({.bytes_per_second = 1e6, .request_seconds = 1e-4, .queue_depth = 4});
  const auto start = Clock::now();
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (int j = 0; j < 10; ++j) limiter.transfer(500, {});
      });
    }
  }
  EXPECT_GE(Clock::now() - start, std::chrono::milliseconds(20));
}

TEST(DiskLimiter, AStopEndsTheWaitAtOnce) {
  DiskLimiter limiter({.bytes_per_second = 1});
  std::stop_source stop;
  // Would take 11 days.
  auto waiting =
      std::async(std::launch::async, [&] { return limiter.transfer(1'000'000, stop.get_token()); });
  stop.request_stop();
  EXPECT_FALSE(waiting.get());
  EXPECT_FALSE(limiter.transfer(1, stop.get_token()));
}

}  // namespace
}  // namespace chunkio::io
