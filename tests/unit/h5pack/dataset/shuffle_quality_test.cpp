#include "h5pack/dataset/shuffle_quality.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include <chunkio/epoch_order.hpp>

namespace h5pack {
namespace {

using chunkio::EpochOrder;
using chunkio::OrderMode;
using chunkio::RowGroups;

/// The quality of an epoch over `labels`, which are those of rows 0, 1, 2, ...
ShuffleQuality measure(const std::vector<std::int64_t>& labels, std::int64_t group_samples,
                       chunkio::OrderOptions options) {
  const RowGroups groups(group_samples, static_cast<std::int64_t>(labels.size()));
  chunkio::LabelCounter counter;
  for (const std::int64_t label : labels) counter.add(label);
  const std::optional<chunkio::LabelSummary> summary = counter.summary();
  ShuffleMeter meter(summary, groups);
  const EpochOrder order(groups, options, 0);
  for (std::int64_t step = 0; step < order.num_steps(); ++step) {
    const std::vector<std::int64_t> rows = order.batch(step);
    std::vector<std::int64_t> of_rows;
    for (const std::int64_t row : rows) of_rows.push_back(labels[static_cast<std::size_t>(row)]);
    meter.add(rows, of_rows);
  }
  return meter.quality();
}

/// `classes` classes of `samples` each, one after the other.
std::vector<std::int64_t> sorted_labels(std::int64_t classes, std::int64_t samples) {
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < classes * samples; ++i) labels.push_back(i / samples);
  return labels;
}

TEST(LabelEntropy, IsThatOfTheShares) {
  EXPECT_EQ(label_entropy({}), 0);
  EXPECT_EQ(label_entropy(std::vector<std::int64_t>{5, 5, 5}), 0);
  EXPECT_DOUBLE_EQ(label_entropy(std::vector<std::int64_t>{1, 2, 1, 2}), 1);
  EXPECT_DOUBLE_EQ(label_entropy(std::vector<std::int64_t>{0, 1, 2, 3}), 2);
  EXPECT_NEAR(label_entropy(std::vector<std::int64_t>{-9, -9, -9, 7}), 0.8112781244591328, 1e-12);
}

/// By going through all draws.
double entropy_of_all_draws(const std::vector<std::int64_t>& labels, std::int64_t size) {
  std::vector<bool> chosen(labels.size());
  std::fill(chosen.begin(), chosen.begin() + size, true);
  double sum = 0;
  std::int64_t draws = 0;
  do {
    std::vector<std::int64_t> draw;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      if (chosen[i]) draw.push_back(labels[i]);
    }
    sum += label_entropy(draw);
    ++draws;
  } while (std::prev_permutation(chosen.begin(), chosen.end()));
  return sum / static_cast<double>(draws);
}

TEST(ExpectedLabelEntropy, IsTheMeanOverAllDraws) {
  const std::vector<std::int64_t> labels = {0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 3};
  const std::vector<std::int64_t> counts = {5, 3, 0, 2, 1};
  for (std::int64_t size = 1; size <= 11; ++size) {
    EXPECT_NEAR(expected_label_entropy(counts, size), entropy_of_all_draws(labels, size), 1e-12)
        << size;
  }
  EXPECT_EQ(expected_label_entropy(counts, 0), 0);
  EXPECT_EQ(expected_label_entropy({}, 0), 0);
}

TEST(ExpectedLabelEntropy, OfLargeDataIsNearTheEntropyOfAllLabelsAndBelowIt) {
  const std::vector<std::int64_t> counts(1000, 1'281);
  EXPECT_NEAR(expected_label_entropy(counts, 1'281'000), std::log2(1000), 1e-9);
  const double of_batch = expected_label_entropy(counts, 256);
  // All labels different would be 8 bits; 256 of 1000 classes repeat some.
  EXPECT_LT(of_batch, 8);
  EXPECT_GT(of_batch, 7.6);
  const std::vector<std::int64_t> huge(2, 5'000'000'000);
  EXPECT_NEAR(expected_label_entropy(huge, 4096), 1 - 1 / (2 * std::log(2) * 4096), 1e-6);
}

TEST(ExpectedPairRate, CountsPairsWithinGroups) {
  // 10 samples in groups of 4, 4, 2: (6 + 6 + 1) of 45 pairs.
  EXPECT_DOUBLE_EQ(expected_pair_rate(RowGroups(4, 10)), 13.0 / 45);
  EXPECT_EQ(expected_pair_rate(RowGroups(4, 1)), 0);
  EXPECT_EQ(expected_pair_rate(RowGroups(10, 10)), 1);
  EXPECT_EQ(expected_pair_rate(RowGroups(1, 10)), 0);
}

TEST(LabelCounter, KnowsSortedFiles) {
  const auto is_sorted = [](const std::vector<std::int64_t>& labels) {
    chunkio::LabelCounter counter;
    for (const std::int64_t label : labels) counter.add(label);
    return counter.summary()->sorted_by_class;
  };
  EXPECT_TRUE(is_sorted(sorted_labels(10, 100)));
  EXPECT_TRUE(is_sorted(sorted_labels(2, 20)));
  std::vector<std::int64_t> twice = sorted_labels(10, 100);
  const std::vector<std::int64_t> again = twice;
  twice.insert(twice.end(), again.begin(), again.end());
  EXPECT_TRUE(is_sorted(twice));
  // Taken in turns, and at the golden section, which is as good as random here.
  std::vector<std::int64_t> mixed;
  for (std::int64_t i = 0; i < 1000; ++i) mixed.push_back(i * 618 % 1000 / 100);
  EXPECT_FALSE(is_sorted(mixed));
  EXPECT_FALSE(is_sorted(std::vector<std::int64_t>(1000, 3))) << "one class has nothing to sort";
  std::vector<std::int64_t> ids(1000);
  std::iota(ids.begin(), ids.end(), std::int64_t{0});
  EXPECT_FALSE(is_sorted(ids)) << "row numbers are no classes that lie together";
}

TEST(LabelCounter, NeitherNothingNorRowNumbersAreClasses) {
  chunkio::LabelCounter counter;
  EXPECT_FALSE(counter.summary().has_value());
  for (std::size_t i = 0; i < chunkio::LabelCounter::kMaxClasses; ++i) {
    counter.add(static_cast<std::int64_t>(i));
  }
  EXPECT_TRUE(counter.summary().has_value());
  counter.add(-1);
  counter.add(-2);
  EXPECT_FALSE(counter.summary().has_value());
}

TEST(ShuffleQuality, RandomOrderIsAsGoodAsAGlobalShuffle) {
  const ShuffleQuality quality =
      measure(sorted_labels(10, 400), 50, {.mode = OrderMode::random, .seed = 1, .batch_size = 64});
  EXPECT_NEAR(quality.entropy_ratio().value(), 1, 0.01);
  EXPECT_NEAR(*quality.pair_rate / quality.global_pair_rate, 1, 0.05);
  EXPECT_TRUE(quality.sorted_by_class);
}

TEST(ShuffleQuality, ASortedFileInTinyWindowsIsHardlyMixed) {
  const ShuffleQuality quality =
      measure(sorted_labels(10, 400), 50, {.seed = 1, .batch_size = 50, .window_groups = 1});
  EXPECT_EQ(*quality.label_entropy, 0) << "a batch is a chunk, and a chunk is of one class";
  EXPECT_EQ(quality.entropy_ratio(), 0);
  EXPECT_EQ(*quality.pair_rate, 1);
  EXPECT_LT(quality.global_pair_rate, 0.02);
}

TEST(ShuffleQuality, GrowsWithTheWindow) {
  double last = -1;
  for (const std::int64_t window : {1, 4, 16, 80}) {
    const ShuffleQuality quality =
        measure(sorted_labels(10, 400), 50, {.seed = 1, .batch_size = 50, .window_groups = window});
    EXPECT_GT(*quality.entropy_ratio(), last) << window;
    last = *quality.entropy_ratio();
    EXPECT_NEAR(*quality.pair_rate,
                window == 80 ? quality.global_pair_rate : 1.0 / static_cast<double>(window),
                window == 1 ? 0 : 0.02);
  }
  EXPECT_NEAR(last, 1, 0.01) << "one window of the whole file";
}

TEST(ShuffleQuality, WithoutLabelsOnlyPairs) {
  const RowGroups groups(5, 20);
  const std::optional<chunkio::LabelSummary> none;
  ShuffleMeter meter(none, groups);
  EXPECT_FALSE(meter.quality().pair_rate.has_value());
  meter.add(std::vector<std::int64_t>{0, 5, 10, 15}, {});
  EXPECT_EQ(*meter.quality().pair_rate, 0);
  meter.add(std::vector<std::int64_t>{1, 2, 3, 6}, {});
  EXPECT_DOUBLE_EQ(*meter.quality().pair_rate, 3.0 / 12);
  EXPECT_FALSE(meter.quality().label_entropy.has_value());
  EXPECT_FALSE(meter.quality().entropy_ratio().has_value());
}

TEST(ShuffleQuality, OneClassHasNoRatio) {
  const ShuffleQuality quality =
      measure(std::vector<std::int64_t>(100, 4), 10, {.batch_size = 10, .window_groups = 2});
  EXPECT_EQ(*quality.label_entropy, 0);
  EXPECT_FALSE(quality.entropy_ratio().has_value());
}

}  // namespace
}  // namespace h5pack
