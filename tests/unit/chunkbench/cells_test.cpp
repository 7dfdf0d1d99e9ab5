#include "chunkbench/cells.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <chunkio/error.hpp>

#include "chunkbench/continuation.hpp"
#include "chunkbench/results_files.hpp"
#include "chunkbench/trial.hpp"

namespace {

using bench::Cell;
using bench::CellStatus;
using bench::choose_chunks;
using bench::ChunkSize;
using chunkio::OrderMode;

bench::SweepOptions some_options() {
  bench::SweepOptions options;
  options.cache_bytes = {1000, 4000};
  options.orders = {OrderMode::chunk_shuffled, OrderMode::random};
  options.sources = {"mapped", "h5dread"};
  options.threads = {1, 2};
  return options;
}

TEST(ChooseChunks, SaysWhatIsNotAsAskedFor) {
  std::vector<std::string> notes;
  const std::vector<std::int64_t> bytes = {100, 300, 350, 1000, 100'000, 200'000};
  // Images of 300 bytes, 20 of them.
  const std::vector<ChunkSize> chunks = choose_chunks(bytes, 300, 20, false, notes);
  EXPECT_EQ(chunks, (std::vector<ChunkSize>{{300, 1}, {1000, 3}, {100'000, 20}}));
  ASSERT_EQ(notes.size(), 6U);
  EXPECT_NE(notes[0].find("do not hold an image"), std::string::npos) << notes[0];
  EXPECT_NE(notes[1].find("left out"), std::string::npos) << notes[1];
  EXPECT_NE(notes[2].find("left out"), std::string::npos) << notes[2];
  EXPECT_NE(notes[3].find("3 images, 900 bytes"), std::string::npos) << notes[3];
  EXPECT_NE(notes[4].find("all of them"), std::string::npos) << notes[4];
  EXPECT_NE(notes[5].find("left out"), std::string::npos) << notes[5];
}

TEST(ChooseChunks, RefusesWhatCannotBeWritten) {
  std::vector<std::string> notes;
  const std::vector<std::int64_t> large = {std::int64_t{5} << 30};
  EXPECT_THROW(static_cast<void>(choose_chunks(large, 1 << 20, 10'000, false, notes)),
               chunkio::Error);
  const std::vector<std::int64_t> filtered = {std::int64_t{300} << 20};
  EXPECT_THROW(static_cast<void>(choose_chunks(filtered, 1 << 20, 10'000, true, notes)),
               chunkio::Error);
}

TEST(MakeCells, MeasuresEachCombinationOnce) {
  const std::vector<ChunkSize> chunks = {{300, 1}, {3000, 10}};
  const std::vector<Cell> cells = bench::make_cells(chunks, some_options());
  // 2 chunks x 2 caches x 2 orders x (2 threads of mapped + h5dread).
  ASSERT_EQ(cells.size(), 24U);
  const auto count = [&](const auto& test) {
    return std::count_if(cells.begin(), cells.end(), test);
  };
  EXPECT_EQ(count([](const Cell& cell) { return cell.source == "h5dread" && cell.threads != 1; }),
            0);
  // The smaller window in random order, for both thread counts and chunk sizes.
  EXPECT_EQ(count([](const Cell& cell) { return cell.status == CellStatus::skipped; }), 4);
  EXPECT_EQ(count([](const Cell& cell) {
              return cell.status == CellStatus::skipped && cell.order == "random" &&
                     cell.cache_bytes == 1000 && cell.source == "mapped" && !cell.reason.empty();
            }),
            4);
}

TEST(MakeCells, SourcesThatReadNoFilteredChunksAreSkipped) {
  bench::SweepOptions options = some_options();
  options.filter.deflate_level = 4;
  for (const Cell& cell : bench::make_cells(std::vector<ChunkSize>{{300, 1}}, options)) {
    EXPECT_EQ(cell.status, cell.source == "mapped" ? CellStatus::skipped : CellStatus::pending);
  }
}

TEST(RowsOfTrial, AreWhatTheBeginningOfAnEpochWouldVisit) {
  const bench::TrialSettings settings = {
      .batch_size = 4, .seed = 3, .images = 25, .random_images = 7};
  // Whole chunks of 10 from all of the file.
  const auto shuffled = bench::rows_of_trial(OrderMode::chunk_shuffled, 1000, 10, settings);
  ASSERT_TRUE(shuffled);
  EXPECT_EQ(shuffled->count(), 30);
  for (const chunkio::RowRange& range : shuffled->ranges()) EXPECT_EQ(range.begin % 10, 0);
  EXPECT_GT(shuffled->ranges().back().end, 500);
  // The first rows, in whole chunks.
  const auto sequential = bench::rows_of_trial(OrderMode::sequential, 1000, 10, settings);
  ASSERT_TRUE(sequential);
  ASSERT_EQ(sequential->ranges().size(), 1U);
  EXPECT_EQ(sequential->ranges()[0], (chunkio::RowRange{0, 30}));
  // Single rows.
  const auto random = bench::rows_of_trial(OrderMode::random, 1000, 10, settings);
  ASSERT_TRUE(random);
  EXPECT_EQ(random->count(), 7);
  // All there are.
  EXPECT_FALSE(bench::rows_of_trial(OrderMode::chunk_shuffled, 25, 10, settings));
  EXPECT_FALSE(bench::rows_of_trial(OrderMode::chunk_shuffled, 29, 10, settings));
  EXPECT_FALSE(bench::rows_of_trial(OrderMode::random, 7, 10, settings));
}

bench::Trial trial(std::int64_t images, double read_seconds) {
  bench::Trial made;
  made.round = {
      .images = images, .seconds = 2, .bytes_read = 10 * images, .chunk_loads = images / 10};
  made.stages = bench::StageSeconds{.read = read_seconds};
  return made;
}

TEST(AddTrial, KeepsTheStagesOfTheTrialNearestToTheMedian) {
  Cell cell;
  bench::add_trial(trial(100, 1), cell);
  bench::add_trial(trial(300, 3), cell);
  bench::add_trial(trial(200, 2), cell);
  EXPECT_EQ(cell.status, CellStatus::measuring);
  EXPECT_EQ(cell.images_per_second->spread.median, 100);
  EXPECT_EQ(cell.images_per_second->spread.lowest, 50);
  EXPECT_EQ(cell.images_per_second->spread.highest, 150);
  EXPECT_EQ(cell.images_per_second->count, 3);
  EXPECT_EQ(cell.bytes_per_second->spread.median, 1000);
  EXPECT_EQ(cell.stages->read, 2);
}

TEST(AddTrial, CountsOfWholeTurnsAreKept) {
  bench::Trial whole = trial(100, 1);
  whole.counted = {.chunk_loads = 10, .hit_rate = 0.9, .read_amplification = 1.5};
  bench::Trial cut = trial(50, 1);
  cut.cut = true;
  cut.counted = {.chunk_loads = {}, .hit_rate = 0.8, .read_amplification = {}};
  Cell cell;
  bench::add_trial(cut, cell);
  EXPECT_EQ(cell.hit_rate.measured, 0.8);
  EXPECT_FALSE(cell.chunk_loads.measured);
  bench::add_trial(whole, cell);
  bench::add_trial(cut, cell);
  EXPECT_EQ(cell.chunk_loads.measured, 10);
  EXPECT_EQ(cell.hit_rate.measured, 0.9);
  EXPECT_EQ(cell.read_amplification.measured, 1.5);
}

TEST(OrderOfRound, IsAnotherPermutationInEachRoundWithEveryCellInFrontOnce) {
  constexpr std::size_t kCells = 12;
  const std::vector<std::size_t> cells = {0, 1, 2, 3, 5, 6, 7, 8, 9, 11};  // 4 and 10 are pruned
  std::vector<std::int64_t> times_first(kCells);
  std::vector<std::int64_t> again(kCells);
  std::map<std::pair<std::size_t, std::size_t>, int> neighbours;
  for (std::int64_t round = 0; round < 10; ++round) {
    const std::vector<std::size_t> order = bench::order_of_round(cells, round, 3, times_first);
    EXPECT_EQ(bench::order_of_round(cells, round, 3, again), order);
    EXPECT_TRUE(std::is_permutation(order.begin(), order.end(), cells.begin(), cells.end()));
    for (std::size_t i = 1; i < order.size(); ++i) ++neighbours[{order[i - 1], order[i]}];
  }
  for (const std::size_t cell : cells) EXPECT_EQ(times_first[cell], 1) << cell;
  // Of 10 rounds; rotations would keep most of them in 9.
  for (const auto& [pair, count] : neighbours) EXPECT_LE(count, 5);
  std::vector<std::int64_t> other(kCells);
  EXPECT_NE(bench::order_of_round(cells, 0, 4, other),
            bench::order_of_round(cells, 0, 3, times_first));
  EXPECT_TRUE(bench::order_of_round({}, 0, 3, times_first).empty());
}

bench::Results some_results() {
  bench::Results results;
  results.dataset = {.name = "a.h5", .shape = {10, 2, 2, 3}, .bytes = 120, .identity = "x"};
  results.options = {.rounds = 5, .cold = true, .batch_size = 4, .seed = 1};
  results.cells = bench::make_cells(std::vector<ChunkSize>{{300, 1}}, some_options());
  return results;
}

TEST(ContinueFrom, RefusesAnotherSweepAndNamesTheDifference) {
  const auto message_of = [](const bench::Results& now) {
    try {
      bench::Results copy = now;
      bench::continue_from(some_results(), "r.json", copy);
    } catch (const chunkio::Error& error) {
      EXPECT_EQ(error.code(), chunkio::ErrorCode::invalid_argument);
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(message_of(some_results()), "");
  bench::Results now = some_results();
  now.options.rounds = 3;
  EXPECT_NE(message_of(now).find("--rounds: there 5, now 3"), std::string::npos) << message_of(now);
  now = some_results();
  now.options.cold = false;
  EXPECT_NE(message_of(now).find("--cold"), std::string::npos);
  now = some_results();
  now.dataset.identity = "y";
  EXPECT_NE(message_of(now).find("images"), std::string::npos);
  now = some_results();
  for (Cell& cell : now.cells) cell.cache_bytes *= 2;
  EXPECT_NE(message_of(now).find("--cache-bytes"), std::string::npos);
  // Also what a rounded text would not show.
  now = some_results();
  for (Cell& cell : now.cells) cell.cache_bytes += cell.cache_bytes == 4000 ? 1 : 0;
  EXPECT_NE(message_of(now).find("4000 B, now 1000 B,4001 B"), std::string::npos)
      << message_of(now);
  now = some_results();
  now.options.trial_seconds = 1e-9;
  EXPECT_NE(message_of(now).find("--trial-seconds: there none, now 1e-09"), std::string::npos)
      << message_of(now);
}

TEST(ToCsv, QuotesWhatHasToBeQuoted) {
  bench::Results results;
  Cell cell;
  cell.status = CellStatus::failed;
  cell.reason = "a \"file\", broken";
  results.cells = {cell};
  EXPECT_NE(bench::to_csv(results).find("failed,\"a \"\"file\"\", broken\",0,,,"),
            std::string::npos)
      << bench::to_csv(results);
}

}  // namespace
