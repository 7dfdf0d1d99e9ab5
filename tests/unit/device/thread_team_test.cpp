#include "device/thread_team.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <new>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace chunkio::device {
namespace {

TEST(ThreadTeam, EachPieceIsDoneOnce) {
  for (const std::int64_t threads : {1, 2, 5}) {
    ThreadTeam team(threads);
    for (const std::int64_t count : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> done(static_cast<std::size_t>(count));
      team.run(count, [&](std::int64_t i, std::int64_t) { ++done[static_cast<std::size_t>(i)]; });
      for (const auto& times : done) ASSERT_EQ(times, 1);
    }
  }
}

TEST(ThreadTeam, AllThreadsTakePart) {
  ThreadTeam team(3);
  std::atomic<int> there = 0;
  std::array<std::atomic<int>, 3> numbers{};
  // Each piece waits for the others, so one thread could not do two.
  team.run(3, [&](std::int64_t, std::int64_t thread) {
    ++numbers.at(static_cast<std::size_t>(thread));
    ++there;
    while (there < 3) std::this_thread::yield();
  });
  EXPECT_EQ(there, 3);
  for (const auto& count : numbers) EXPECT_EQ(count, 1);
}

TEST(ThreadTeam, CallersTakeTurns) {
  ThreadTeam team(2);
  std::atomic<int> inside = 0;
  std::atomic<bool> mixed = false;
  std::atomic<std::int64_t> sum = 0;
  const auto call = [&](int mark) {
    for (int round = 0; round < 200; ++round) {
      team.run(10, [&, mark](std::int64_t i, std::int64_t) {
        const int before = inside.exchange(mark);
        if (before != 0 && before != mark) mixed = true;
        sum += i;
        inside = mark;
      });
    }
  };
  std::thread other(call, 1);
  call(1);
  other.join();
  EXPECT_FALSE(mixed);
  EXPECT_EQ(sum, 2 * 200 * 45);
}

TEST(ThreadTeam, WhatIsThrownComesOutWhenAllHaveEnded) {
  ThreadTeam team(3);
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> done = 0;
    const auto work = [&](std::int64_t i, std::int64_t) {
      ++done;
      if (i % 3 == 1) throw std::bad_alloc();
    };
    EXPECT_THROW(team.run(10, work), std::bad_alloc);
    EXPECT_EQ(done, 10);
    EXPECT_NO_THROW(team.run(5, [](std::int64_t, std::int64_t) {}));
  }
}

TEST(ThreadTeam, ManyComeAndGo) {
  for (int i = 0; i < 200; ++i) {
    ThreadTeam team(4);
    std::atomic<int> done = 0;
    if (i % 2 == 0) team.run(5, [&](std::int64_t, std::int64_t) { ++done; });
    EXPECT_EQ(done, i % 2 == 0 ? 5 : 0);
  }
}

}  // namespace
}  // namespace chunkio::device
