#include "base/run_on_threads.hpp"

#include <atomic>
#include <cstdint>
#include <new>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace chunkio::base {
namespace {

TEST(RunOnThreads, EachThreadHasANumberAndTheCallerIsTheFirst) {
  for (const std::int64_t threads : {1, 2, 5}) {
    std::vector<std::thread::id> ids(static_cast<std::size_t>(threads));
    run_on_threads(threads, [&](std::int64_t thread, const std::stop_token& stop) {
      EXPECT_FALSE(stop.stop_requested());
      ids[static_cast<std::size_t>(thread)] = std::this_thread::get_id();
    });
    EXPECT_EQ(ids.front(), std::this_thread::get_id());
    EXPECT_EQ(std::set(ids.begin(), ids.end()).size(), ids.size());
  }
}

TEST(RunOnThreads, NoThreadsAreOne) {
  int calls = 0;
  run_on_threads(0, [&](std::int64_t, const std::stop_token&) { ++calls; });
  EXPECT_EQ(calls, 1);
}

TEST(RunOnThreads, OneThatThrowsStopsTheOthersAndIsRethrownOnce) {
  for (const std::int64_t thrower : {0, 2}) {
    std::atomic<int> stopped = 0;
    EXPECT_THROW(run_on_threads(3,
                                [&](std::int64_t thread, const std::stop_token& stop) {
                                  if (thread == thrower) throw std::bad_alloc();
                                  while (!stop.stop_requested()) std::this_thread::yield();
                                  ++stopped;
                                  throw std::runtime_error("later");
                                }),
                 std::bad_alloc);
    EXPECT_EQ(stopped, 2);
  }
}

}  // namespace
}  // namespace chunkio::base
