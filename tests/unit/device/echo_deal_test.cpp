#include "device/echo_deal.hpp"

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "support/golden_vectors.hpp"

namespace chunkio::device {
namespace {

TEST(EchoDeal, MatchesTheReference) {
  int compared = 0;
  for (const auto& entry : test::golden_vectors("deals.json")) {
    SCOPED_TRACE(entry.dump());
    std::vector<std::int32_t> rows(entry["rows"].get<std::size_t>());
    deal_rows({.seed = entry["seed"],
               .epoch = entry["epoch"],
               .rank = entry["rank"],
               .first_batch = entry["first_batch"]},
              entry["echo_pass"], rows);
    EXPECT_EQ(rows, entry["order"].get<std::vector<std::int32_t>>());
    ++compared;
  }
  EXPECT_EQ(compared, 5);
}

}  // namespace
}  // namespace chunkio::device
