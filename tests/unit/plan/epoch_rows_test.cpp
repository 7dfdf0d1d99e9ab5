#include "plan/epoch_rows.hpp"

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include <chunkio/epoch_order.hpp>

namespace chunkio::plan {
namespace {

TEST(EpochRows, AreThoseOfTheOrderBatchByBatch) {
  const RowSelection some({{2, 9}, {11, 12}, {40, 97}});
  for (const RowGroups& groups :
       {RowGroups(7, 100), RowGroups(7, std::vector<std::int64_t>{30, 69}),
        RowGroups(7, std::vector<std::int64_t>{100}, some)}) {
    for (const OrderMode mode :
         {OrderMode::chunk_shuffled, OrderMode::sequential, OrderMode::random}) {
      for (const Uneven uneven : {Uneven::pad, Uneven::drop, Uneven::exact}) {
        for (const std::int64_t rank : {0, 1}) {
          const OrderOptions options{.mode = mode,
                                     .seed = 5,
                                     .batch_size = 6,
                                     .window_groups = 3,
                                     .rank = rank,
                                     .world_size = 2,
                                     .lanes = 4,
                                     .uneven = uneven};
          const EpochOrder order(groups, options, 3);
          const EpochRows rows(order);
          ASSERT_EQ(rows.num_steps(), order.num_steps());
          for (std::int64_t step = 0; step < order.num_steps(); ++step) {
            std::vector<std::int64_t> batch;
            rows.append_batch(step, batch);
            ASSERT_EQ(batch, order.batch(step)) << "rank " << rank << ", step " << step;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace chunkio::plan
