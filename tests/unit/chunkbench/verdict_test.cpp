#include "chunkbench/verdict.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "chunkbench/ranking.hpp"
#include "chunkbench/results.hpp"

namespace {

using namespace bench;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

Cell cell(const std::string& order, const std::string& source, std::int64_t chunk_mib,
          std::int64_t cache_mib, double speed) {
  Cell made;
  made.chunk_bytes = chunk_mib * kMiB;
  made.chunk_samples = 10 * chunk_mib;
  made.cache_bytes = cache_mib * kMiB;
  made.order = order;
  made.source = source;
  made.threads = 2;
  made.status = CellStatus::measured;
  made.images_per_second = Sampled{{speed, speed * 0.98, speed * 1.02}, 5};
  made.bytes_per_second = Sampled{{speed * 1e4, speed * 0.98e4, speed * 1.02e4}, 5};
  return made;
}

Results sweep() {
  Results results;
  results.complete = true;
  results.options.cold = true;
  results.ceilings = {{"storage, large reads", {{1e9, 0.9e9, 1.1e9}, 3}},
                      {"memory, copy of the same rows", {{1e10, 1e10, 1e10}, 3}}};
  results.cells = {cell("chunk_shuffled", "mapped", 1, 64, 50'000),
                   cell("chunk_shuffled", "mapped", 1, 256, 60'000),
                   cell("chunk_shuffled", "mapped", 4, 64, 79'000),
                   cell("chunk_shuffled", "mapped", 4, 256, 80'000),
                   cell("chunk_shuffled", "h5dread", 4, 256, 20'000),
                   cell("random", "mapped", 1, 64, 4'000),
                   cell("sequential", "mapped", 4, 256, 95'000)};
  return results;
}

TEST(Ranking, GroupsAreInTheirNaturalOrder) {
  std::vector<std::string> names;
  for (const CellGroup& group : group_cells(sweep())) {
    names.push_back(group.order + " " + group.source);
  }
  EXPECT_THAT(names, ElementsAre("chunk_shuffled mapped", "chunk_shuffled h5dread", "random mapped",
                                 "sequential mapped"));
}

TEST(Ranking, CellsWhoseRangeMeetsTheBestAreAsGood) {
  const Results results = sweep();
  const CellGroup group = group_cells(results).front();
  EXPECT_EQ(group.best, 3U);
  EXPECT_TRUE(may_be_as_fast(results.cells[2], results.cells[3]));
  EXPECT_FALSE(may_be_as_fast(results.cells[1], results.cells[3]));
}

TEST(Ranking, NobodyTrainsInSequentialOrder) {
  Results results = sweep();
  EXPECT_EQ(best_cell(results), &results.cells[3]);
  results.cells = {results.cells.back()};
  EXPECT_EQ(best_cell(results), &results.cells[0]);
  results.cells.front().status = CellStatus::measuring;
  EXPECT_EQ(best_cell(results), nullptr);
}

TEST(Ranking, OfCellsThatCannotBeToldApartTheOneThatMixesMostIsBest) {
  Results results = sweep();
  const auto best_index = [&] { return best_cell(results) - results.cells.data(); };
  results.cells.push_back(cell("chunk_shuffled", "scatter", 1, 256, 79'000));  // 256 chunks
  EXPECT_EQ(best_index(), 7);
  results.cells.push_back(cell("chunk_shuffled", "mapped", 1, 512, 70'000));  // slower for certain
  EXPECT_EQ(best_index(), 7);
  results.cells.push_back(
      cell("chunk_shuffled", "h5dread", 1, 1024, 80'500));  // a cache, no window
  EXPECT_EQ(best_index(), 7);
  results.cells.push_back(cell("random", "mapped", 4, 64, 79'000));
  EXPECT_EQ(best_index(), 10);
}

TEST(Ranking, TheBoundIsWhatReadingGoesThrough) {
  Results results = sweep();
  EXPECT_EQ(bound_of(results)->name, "the disk");
  EXPECT_DOUBLE_EQ(bound_of(results)->bytes_per_second, 1e9);
  results.options.cold = false;
  EXPECT_EQ(bound_of(results)->name, "a copy in memory");
  results.options.limit = ShapedDisk{"hdd", 2e8, 0.008, 1};
  EXPECT_EQ(bound_of(results)->name, "profile hdd");
  EXPECT_DOUBLE_EQ(bound_of(results)->bytes_per_second, 2e8);
  results.options.limit->bytes_per_second = 5e9;
  EXPECT_EQ(bound_of(results)->name, "the disk");
}

TEST(Verdict, SaysWhatIsBestAndHowSureThatIs) {
  const Verdict verdict = verdict_of(sweep());
  EXPECT_EQ(verdict.headline,
            "Chunks of 4 MiB and a window of 256 MiB: 80,000 images/s, 80.0 % of the disk.");
  EXPECT_EQ(verdict.detail,
            "Source mapped, 2 threads, chunk-shuffled order: 80,000 images/s (78,400 to 81,600, 5 "
            "rounds). 1 other cell may be as fast for all this run can tell.");
}

TEST(Verdict, SaysWhatIsMissing) {
  Results results = sweep();
  EXPECT_THAT(warnings_of(results), IsEmpty());
  results.complete = false;
  results.cells[0].status = CellStatus::pending;
  results.cells[1].status = CellStatus::failed;
  EXPECT_THAT(warnings_of(results), ElementsAre(HasSubstr("1 of 7 cells have not been measured"),
                                                HasSubstr("1 cell failed")));
  results.cells.clear();
  EXPECT_THAT(verdict_of(results).detail, IsEmpty());
  EXPECT_EQ(verdict_of(results).headline, "These results have no sweep.");
}

TEST(Verdict, AnInterruptedLadderIsNoSweepToGoOnWith) {
  Results results;
  results.ladder.push_back({.name = "files", .images_per_second = {{1, 1, 1}, 1}});
  results.complete = false;
  EXPECT_THAT(warnings_of(results),
              ElementsAre(AllOf(HasSubstr("interrupted"), Not(HasSubstr("sweep")))));
}

}  // namespace
