#include "base/scratch_pool.hpp"

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace chunkio::base {
namespace {

TEST(ScratchPool, MakesOneForEachCallerAtATimeAndKeepsThem) {
  ScratchPool<int> pool;
  int made = 0;
  const auto make = [&] { return std::make_unique<int>(++made); };
  for (int round = 0; round < 3; ++round) {
    const auto first = pool.take(make);
    const auto second = pool.take(make);
    EXPECT_NE(&*first, &*second);
  }
  EXPECT_EQ(made, 2);
}

TEST(ScratchPool, GoesOnAfterOneCouldNotBeMade) {
  ScratchPool<int> pool;
  EXPECT_THROW((void)pool.take([]() -> std::unique_ptr<int> { throw std::runtime_error("none"); }),
               std::runtime_error);
  {
    EXPECT_EQ(*pool.take([] { return std::make_unique<int>(7); }), 7);
  }
  EXPECT_EQ(*pool.take([] { return std::make_unique<int>(8); }), 7);
}

TEST(ScratchPool, NeverGivesOneObjectToTwoThreads) {
  constexpr int kThreads = 4;
  ScratchPool<int> pool;
  std::atomic<int> made = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < 2000; ++round) {
        const auto mine = pool.take([&] {
          ++made;
          return std::make_unique<int>();
        });
        *mine = t;
        std::this_thread::yield();
        ASSERT_EQ(*mine, t);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(made, kThreads);
}

}  // namespace
}  // namespace chunkio::base
