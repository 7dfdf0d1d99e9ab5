/// What planning costs: nothing in proportion to the number of samples.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <new>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <chunkio/epoch_order.hpp>

#include "plan/window_plan.hpp"

namespace {

// Bytes that this thread asked of operator new, never reduced.
thread_local std::size_t allocated_bytes = 0;

}  // namespace

// All other forms end in these. Not inline, so that GCC does not see malloc and delete meet.
[[gnu::noinline]] void* operator new(std::size_t size) {
  allocated_bytes += size;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
// AddressSanitizer's does not end in the one above, as that of the standard library does.
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t& /*tag*/) noexcept try {
  return operator new(size);
} catch (const std::bad_alloc&) {
  return nullptr;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace {

using chunkio::EpochOrder;
using chunkio::OrderMode;
using chunkio::OrderOptions;
using chunkio::RowGroups;
using chunkio::RowSelection;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kSamples = 10'000'000'000;
constexpr std::int64_t kGroupSamples = 100;

struct Cost {
  double seconds = std::numeric_limits<double>::infinity();
  std::size_t bytes = 0;
};

/// The least time of many runs, since the others had company on the machine, and the most bytes.
template <class Work>
Cost cost_of(Work work) {
  Cost cost;
  for (int run = 0; run < 300; ++run) {
    const std::size_t bytes_before = allocated_bytes;
    const Clock::time_point start = Clock::now();
    work(run);
    const std::chrono::duration<double> taken = Clock::now() - start;
    cost.seconds = std::min(cost.seconds, taken.count());
    cost.bytes = std::max(cost.bytes, allocated_bytes - bytes_before);
  }
  return cost;
}

TEST(PlanCost, TenBillionRowsArePlannedInUnderAMillisecond) {
  for (const auto mode : {OrderMode::chunk_shuffled, OrderMode::sequential, OrderMode::random}) {
    for (const std::int64_t lanes : {std::int64_t{1}, std::int64_t{8}}) {
      SCOPED_TRACE(std::string(to_string(mode)) + ", lanes " + std::to_string(lanes));
      const OrderOptions options{
          .mode = mode, .seed = 3, .batch_size = 256, .window_groups = 64, .lanes = lanes};
      std::int64_t samples = 0;
      const Cost cost = cost_of([&](std::int64_t epoch) {
        const EpochOrder order(RowGroups(kGroupSamples, kSamples), options, epoch);
        for (std::int64_t lane = 0; lane < lanes; ++lane) {
          const std::int64_t middle = chunkio::plan::lane_delivered(order, lane) / 2;
          const auto extent = chunkio::plan::window_extent(
              order, lane, chunkio::plan::window_of(order, lane, middle));
          samples += extent.end_index - extent.first_index;
        }
        samples += order.num_steps();
      });
      EXPECT_GT(samples, 0);
      EXPECT_LT(cost.seconds, 1e-3);
      EXPECT_GT(cost.bytes, 0U);  // so the count works
      EXPECT_LT(cost.bytes, 4096U);
    }
  }
}

TEST(PlanCost, MemoryIsWhatAnOrderSays) {
  const auto check = [](const RowGroups& groups, const OrderOptions& options) {
    // Not counted: the object itself, and the few numbers a file that RowGroups copies.
    constexpr std::size_t kSlack = 1024;
    std::int64_t said = 0;
    const std::size_t before = allocated_bytes;
    {
      const EpochOrder order(groups, options, 0);
      said = order.memory_bytes();
    }
    const std::size_t taken = allocated_bytes - before;
    EXPECT_LE(static_cast<std::size_t>(said), taken);
    EXPECT_LE(taken, static_cast<std::size_t>(said) + kSlack);
    return said;
  };
  EXPECT_EQ(check(RowGroups(1, 65'536), {}), 512 << 10);
  EXPECT_LT(check(RowGroups(1, 65'537), {}), 100);
  EXPECT_EQ(check(RowGroups(1, 1000), {.mode = OrderMode::sequential}), 0);
  EXPECT_EQ(check(RowGroups(100, 10'000), {.mode = OrderMode::random}), 8 * 10'000);
  // 1000 groups and the starts of their slots.
  EXPECT_EQ(check(RowGroups(10, 20'000, RowSelection({{5, 9'999}})), {}), 8 * 1000 + 8 * 1001);
}

TEST(PlanCost, TheTablesOfASelectionAreWhatItSays) {
  std::vector<std::int64_t> rows;
  for (std::int64_t row = 0; row < 100'000; row += 3) rows.push_back(row);
  const RowSelection selection = RowSelection::of(rows);
  const std::size_t before = allocated_bytes;
  const RowGroups groups(50, 100'000, selection);
  const std::size_t taken = allocated_bytes - before;
  const auto shared = selection.ranges().size_bytes();  // with `selection`
  EXPECT_LE(taken + shared, static_cast<std::size_t>(groups.memory_bytes()) + 1024);
  EXPECT_GE(taken + shared, static_cast<std::size_t>(groups.memory_bytes()));
}

}  // namespace
