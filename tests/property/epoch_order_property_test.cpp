/// Properties of the order that hold for any options, tried on random ones. The seed is logged; set
/// CHUNKIO_TEST_SEED to repeat a run.
#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <chunkio/epoch_order.hpp>

#include "plan/window_plan.hpp"
#include "support/scratch.hpp"

namespace chunkio {
namespace {

using namespace plan;

using Rows = std::vector<std::int64_t>;

constexpr int kRounds = 300;

struct Case {
  std::int64_t group_samples = 1;
  Rows files;
  Rows selected;  // all rows if there are several files
  OrderOptions options;
  std::int64_t epoch = 0;

  [[nodiscard]] std::int64_t num_samples() const { return std::ssize(selected); }
  [[nodiscard]] RowGroups groups() const {
    if (files.size() > 1) return RowGroups(group_samples, files);
    return RowGroups(group_samples, files[0], RowSelection::of(selected));
  }
  [[nodiscard]] EpochOrder order(std::int64_t rank) const {
    OrderOptions with_rank = options;
    with_rank.rank = rank;
    return EpochOrder(groups(), with_rank, epoch);
  }
  /// The same lanes and global batch on another number of ranks.
  [[nodiscard]] Case on_ranks(std::int64_t world_size) const {
    Case other = *this;
    other.options.batch_size = options.batch_size * options.world_size / world_size;
    other.options.world_size = world_size;
    return other;
  }
  [[nodiscard]] std::string text() const {
    std::string line = "k " + std::to_string(group_samples) + " files";
    for (const std::int64_t file : files) line.append(" ").append(std::to_string(file));
    line += " selected " + std::to_string(selected.size());
    return line + " " + std::string(to_string(options.mode)) + " seed " +
           std::to_string(options.seed) + " batch " + std::to_string(options.batch_size) + " W " +
           std::to_string(options.window_groups) + " R " + std::to_string(options.world_size) +
           " V " + std::to_string(options.lanes) + " " + std::string(to_string(options.uneven)) +
           (options.drop_last ? " drop_last" : "") + " epoch " + std::to_string(epoch);
  }
};

class EpochOrderProperty : public ::testing::Test {
 protected:
  std::int64_t between(std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random_);
  }

  Case make_case() {
    Case made;
    made.group_samples = between(1, 12);
    for (std::int64_t file = between(1, 5); file > 0; --file) made.files.push_back(between(1, 80));
    OrderOptions& options = made.options;
    options.mode = static_cast<OrderMode>(between(0, 2));
    options.seed = random_();
    options.window_groups = between(1, 6);
    options.world_size = between(1, 4);
    const std::int64_t lanes_per_rank = between(1, 3);
    options.lanes = options.world_size * lanes_per_rank;
    options.batch_size = lanes_per_rank * between(1, 9);
    options.uneven = static_cast<Uneven>(between(0, 2));
    options.drop_last = options.uneven != Uneven::exact && between(0, 1) == 1;
    made.epoch = between(0, 1000);
    const auto total = [&made] {
      return std::accumulate(made.files.begin(), made.files.end(), std::int64_t{0});
    };
    if (total() < options.lanes) made.files.push_back(options.lanes);
    // Half the cases are some rows of one file.
    if (between(0, 1) == 1) made.files = {total()};
    made.selected.resize(static_cast<std::size_t>(total()));
    std::iota(made.selected.begin(), made.selected.end(), 0);
    if (made.files.size() == 1) select_runs(made);
    return made;
  }

  /// Keeps at least as many rows as there are lanes, in runs of random length.
  void select_runs(Case& made) {
    Rows kept;
    const std::int64_t stay = between(0, 20);
    bool in = true;
    std::int64_t may_go = std::ssize(made.selected) - made.options.lanes;
    for (const std::int64_t row : made.selected) {
      if (between(0, stay) == 0) in = !in;
      if (in || may_go == 0) {
        kept.push_back(row);
      } else {
        --may_go;
      }
    }
    made.selected = std::move(kept);
  }

  /// Random cases, until one fails.
  template <class Check>
  void each_case(Check check) {
    for (int round = 0; round < kRounds && !HasFailure(); ++round) {
      const Case made = make_case();
      SCOPED_TRACE(made.text());
      check(made);
    }
  }

  std::mt19937_64 random_{test::test_seed()};
};

/// What all ranks together deliver, batch after batch.
Rows epoch_rows(const Case& made) {
  Rows rows;
  for (std::int64_t rank = 0; rank < made.options.world_size; ++rank) {
    const EpochOrder order = made.order(rank);
    for (std::int64_t step = 0; step < order.num_steps(); ++step) {
      const Rows batch = order.batch(step);
      rows.insert(rows.end(), batch.begin(), batch.end());
    }
  }
  return rows;
}

/// L_v as the window plans have it; -1 where no plan says.
Rows planned_lane(const EpochOrder& order, std::int64_t lane, std::map<std::int64_t, int>& reads) {
  Rows rows(static_cast<std::size_t>(lane_delivered(order, lane)), -1);
  std::int64_t expected_first = 0;
  WindowPlan plan;
  std::vector<std::uint32_t> offsets;
  for (std::int64_t w = 0; w < num_windows(order, lane); ++w) {
    plan_window(order, lane, w, plan);
    const WindowExtent extent = window_extent(order, lane, w);
    EXPECT_EQ(plan.lane, lane);
    EXPECT_EQ(plan.window, w);
    EXPECT_EQ(plan.first_index, expected_first);
    EXPECT_EQ(plan.first_index, extent.first_index);
    EXPECT_EQ(plan.end_index, extent.end_index);
    EXPECT_LE(plan.end_index - plan.first_index, max_window_samples(order, 1));
    EXPECT_EQ(std::ssize(plan.rows), plan.end_index - plan.first_index);
    expected_first = plan.end_index;
    std::uint32_t next = 0;
    for (const GroupRead& read : plan.reads) {
      ++reads[read.group];
      EXPECT_EQ(read.first, next);
      EXPECT_GE(read.count, 1U);
      next += read.count;
      order.groups().offsets(read.group, offsets);
      const std::int64_t first_row = order.groups().extent(read.group).begin;
      for (std::uint32_t i = read.first; i < next; ++i) {
        const PlannedRow planned = plan.rows[i];
        EXPECT_LT(planned.row, order.groups().length(read.group));
        if (i > read.first) {
          EXPECT_LE(plan.rows[i - 1].row, planned.row);
        }
        const auto index = static_cast<std::size_t>(plan.first_index + planned.index);
        EXPECT_EQ(rows.at(index), -1) << "delivered twice";
        rows.at(index) = first_row + offsets.at(planned.row);
      }
    }
    EXPECT_EQ(next, plan.rows.size());
  }
  EXPECT_EQ(expected_first, lane_delivered(order, lane));
  return rows;
}

TEST_F(EpochOrderProperty, ExactDeliversAllOnceDropRepeatsNothingAndPadLeavesNothingOut) {
  each_case([](Case made) {
    made.options.drop_last = false;
    for (const auto uneven : {Uneven::exact, Uneven::drop, Uneven::pad}) {
      made.options.uneven = uneven;
      SCOPED_TRACE(made.text());
      Rows rows = epoch_rows(made);
      const std::int64_t delivered = std::ssize(rows);
      std::sort(rows.begin(), rows.end());
      if (uneven == Uneven::exact) {
        ASSERT_EQ(rows, made.selected);
      }
      const std::int64_t distinct = std::unique(rows.begin(), rows.end()) - rows.begin();
      if (uneven == Uneven::drop) {
        ASSERT_EQ(distinct, delivered);
        ASSERT_GT(delivered, made.num_samples() - made.options.lanes);
      } else {
        ASSERT_EQ(distinct, made.num_samples());
        ASSERT_LT(delivered, made.num_samples() + made.options.lanes);
      }
    }
  });
}

TEST_F(EpochOrderProperty, RanksStepAlikeInPadAndDrop) {
  each_case([&](Case made) {
    if (made.options.uneven == Uneven::exact) made.options.uneven = Uneven::pad;
    SCOPED_TRACE(made.text());
    const EpochOrder first = made.order(0);
    for (std::int64_t rank = 1; rank < made.options.world_size; ++rank) {
      const EpochOrder order = made.order(rank);
      ASSERT_EQ(order.num_steps(), first.num_steps());
      for (std::int64_t step = 0; step < order.num_steps(); ++step) {
        ASSERT_EQ(order.batch_rows(step), first.batch_rows(step));
        if (made.options.drop_last) {
          ASSERT_EQ(order.batch_rows(step), made.options.batch_size);
        }
      }
    }
  });
}

TEST_F(EpochOrderProperty, GlobalBatchesDoNotDependOnTheNumberOfRanks) {
  each_case([&](const Case& made) {
    const Case alone = made.on_ranks(1);
    const EpochOrder whole = alone.order(0);
    for (std::int64_t ranks = 2; ranks <= made.options.lanes; ++ranks) {
      if (made.options.lanes % ranks != 0) continue;
      const Case shared = made.on_ranks(ranks);
      for (std::int64_t step = 0; step < whole.num_steps(); ++step) {
        Rows global;
        for (std::int64_t rank = 0; rank < ranks; ++rank) {
          const EpochOrder order = shared.order(rank);
          if (step >= order.num_steps()) continue;
          const Rows batch = order.batch(step);
          global.insert(global.end(), batch.begin(), batch.end());
        }
        ASSERT_EQ(global, whole.batch(step)) << ranks << " ranks, step " << step;
      }
    }
  });
}

TEST_F(EpochOrderProperty, WindowPlansEqualBatches) {
  each_case([&](const Case& made) {
    const std::int64_t lanes_per_rank = made.options.lanes / made.options.world_size;
    std::map<std::int64_t, int> reads;
    for (std::int64_t rank = 0; rank < made.options.world_size; ++rank) {
      const EpochOrder order = made.order(rank);
      const std::int64_t b = lane_batch(order);
      std::vector<Rows> lanes;
      for (std::int64_t v = 0; v < lanes_per_rank; ++v) {
        lanes.push_back(planned_lane(order, rank * lanes_per_rank + v, reads));
      }
      for (std::int64_t step = 0; step < order.num_steps(); ++step) {
        Rows batch;
        for (const Rows& lane : lanes) {
          const auto begin = std::min(std::ssize(lane), step * b);
          const auto end = std::min(std::ssize(lane), begin + b);
          batch.insert(batch.end(), lane.begin() + begin, lane.begin() + end);
        }
        ASSERT_EQ(batch, order.batch(step)) << "rank " << rank << " step " << step;
      }
    }
  });
}

TEST_F(EpochOrderProperty, GroupsAreLoadedOnceBesidesCutsAndPadding) {
  each_case([&](Case made) {
    made.options.drop_last = false;
    if (made.options.mode == OrderMode::random) made.options.mode = OrderMode::chunk_shuffled;
    SCOPED_TRACE(made.text());
    const EpochOrder order = made.order(0);
    std::map<std::int64_t, int> reads;
    std::int64_t delivered = 0;
    for (std::int64_t v = 0; v < made.options.lanes; ++v) {
      delivered += std::ssize(planned_lane(order, v, reads));
    }
    std::int64_t loads = 0;
    for (const auto& [group, count] : reads) loads += count;
    const std::int64_t groups = order.groups().num_groups();
    if (made.options.uneven != Uneven::drop) {
      ASSERT_EQ(std::ssize(reads), groups);
    }
    const std::int64_t padded = std::max<std::int64_t>(0, delivered - made.num_samples());
    ASSERT_LE(loads, groups + made.options.lanes - 1 + padded);
  });
}

TEST_F(EpochOrderProperty, WindowsHoldTheirSamplesAndRunsOfThemTheirBound) {
  each_case([&](const Case& made) {
    const EpochOrder order = made.order(0);
    for (std::int64_t lane = 0; lane < made.options.lanes; ++lane) {
      const std::int64_t windows = num_windows(order, lane);
      for (std::int64_t first = 0; first < windows; ++first) {
        const WindowExtent extent = window_extent(order, lane, first);
        for (std::int64_t i = extent.first_index; i < extent.end_index; ++i) {
          ASSERT_EQ(window_of(order, lane, i), first) << "lane " << lane << " index " << i;
        }
        for (std::int64_t end = first + 1; end <= windows; ++end) {
          const std::int64_t covered =
              window_extent(order, lane, end - 1).end_index - extent.first_index;
          ASSERT_LE(covered, max_window_samples(order, end - first));
        }
      }
    }
  });
}

/// What a plan delivers: (row group, which of its samples), by delivery index in the lane.
std::map<std::int64_t, std::pair<std::int64_t, std::uint32_t>> deliveries(const WindowPlan& plan) {
  std::map<std::int64_t, std::pair<std::int64_t, std::uint32_t>> found;
  for (const GroupRead& read : plan.reads) {
    for (std::uint32_t i = read.first; i < read.first + read.count; ++i) {
      found[plan.first_index + plan.rows[i].index] = {read.group, plan.rows[i].row};
    }
  }
  return found;
}

TEST_F(EpochOrderProperty, APlanCutAnywhereDeliversTheRestOfIt) {
  each_case([&](const Case& made) {
    const EpochOrder order = made.order(0);
    const std::int64_t lane = between(0, made.options.lanes - 1);
    const std::int64_t window = between(0, num_windows(order, lane) - 1);
    WindowPlan full;
    plan_window(order, lane, window, full);
    for (std::int64_t wanted = full.first_index - 1; wanted <= full.end_index + 1; ++wanted) {
      const std::int64_t index = std::clamp(wanted, full.first_index, full.end_index);
      WindowPlan rest = full;
      drop_before(rest, wanted);
      ASSERT_EQ(rest.lane, lane);
      ASSERT_EQ(rest.window, window);
      ASSERT_EQ(rest.first_index, index);
      ASSERT_EQ(rest.end_index, full.end_index);
      ASSERT_EQ(std::ssize(rest.rows), full.end_index - index);
      auto expected = deliveries(full);
      expected.erase(expected.begin(), expected.lower_bound(index));
      ASSERT_EQ(deliveries(rest), expected) << "from " << index;
      std::uint32_t next = 0;
      for (const GroupRead& read : rest.reads) {
        ASSERT_EQ(read.first, next);
        ASSERT_GE(read.count, 1U);
        next += read.count;
        for (std::uint32_t i = read.first + 1; i < next; ++i) {
          ASSERT_LE(rest.rows[i - 1].row, rest.rows[i].row);
        }
      }
      ASSERT_EQ(next, rest.rows.size());
    }
  });
}

}  // namespace
}  // namespace chunkio
