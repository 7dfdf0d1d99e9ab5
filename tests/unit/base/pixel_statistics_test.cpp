#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include <gtest/gtest.h>
#include <tbb/parallel_for.h>
#include <tbb/task_group.h>

#include <chunkio/statistics.hpp>

#include "h5pack/image/image_sizes.hpp"
#include "h5pack/pack/parallel_statistics.hpp"
#include "support/scratch.hpp"

namespace h5pack {
namespace {

using chunkio::Layout;
using chunkio::PixelStatistics;

/// Two passes in long double: slow, but cannot cancel.
chunkio::ChannelStatistics reference(const std::vector<std::uint8_t>& nhwc, std::size_t channels) {
  chunkio::ChannelStatistics result;
  const long double count = static_cast<long double>(nhwc.size() / channels);
  for (std::size_t c = 0; c < channels; ++c) {
    long double sum = 0;
    for (std::size_t i = c; i < nhwc.size(); i += channels) sum += nhwc[i];
    const long double mean = sum / count;
    long double squares = 0;
    for (std::size_t i = c; i < nhwc.size(); i += channels) {
      squares += (nhwc[i] - mean) * (nhwc[i] - mean);
    }
    result.mean.push_back(static_cast<double>(mean / 255));
    result.std.push_back(static_cast<double>(std::sqrt(squares / count) / 255));
  }
  return result;
}

void expect_equal(const chunkio::ChannelStatistics& a, const chunkio::ChannelStatistics& b) {
  ASSERT_EQ(a.mean.size(), b.mean.size());
  for (std::size_t c = 0; c < a.mean.size(); ++c) {
    EXPECT_NEAR(a.mean[c], b.mean[c], 1e-15);
    EXPECT_NEAR(a.std[c], b.std[c], 1e-15);
  }
}

TEST(PixelStatistics, EqualsTwoPassReferenceForAllSizes) {
  std::mt19937_64 random(chunkio::test::test_seed());
  for (const std::size_t pixels : {1U, 2U, 15U, 16U, 17U, 33U, 1024U, 5000U}) {
    for (const std::size_t channels : {1U, 2U, 3U, 4U}) {
      std::vector<std::uint8_t> nhwc(pixels * channels);
      for (auto& value : nhwc) value = static_cast<std::uint8_t>(random());
      PixelStatistics statistics(static_cast<std::int64_t>(channels), Layout::nhwc);
      statistics.add(nhwc);
      expect_equal(statistics.result(), reference(nhwc, channels));

      std::vector<std::uint8_t> nchw(nhwc.size());
      for (std::size_t i = 0; i < nhwc.size(); ++i)
        nchw[(i % channels) * pixels + i / channels] = nhwc[i];
      PixelStatistics planar(static_cast<std::int64_t>(channels), Layout::nchw);
      planar.add(nchw);
      EXPECT_EQ(planar.result().mean, statistics.result().mean);
      EXPECT_EQ(planar.result().std, statistics.result().std);
    }
  }
}

TEST(PixelStatistics, NothingOverflowsInTheBrightestImage) {
  for (const std::size_t channels : {1U, 3U, 4U}) {
    PixelStatistics statistics(static_cast<std::int64_t>(channels), Layout::nhwc);
    // More blocks of 16 pixels than 32-bit lane sums of squares can hold.
    statistics.add(std::vector<std::uint8_t>(16 * 140'000 * channels, 255));
    for (const double mean : statistics.result().mean) EXPECT_EQ(mean, 1.0);
    for (const double std : statistics.result().std) EXPECT_EQ(std, 0.0);
  }
}

TEST(PixelStatistics, DoesNotDependOnHowImagesAreSharedOut) {
  std::mt19937_64 random(chunkio::test::test_seed());
  std::vector<PixelStatistics> parts(3, PixelStatistics(3, Layout::nhwc));
  PixelStatistics whole(3, Layout::nhwc);
  for (int i = 0; i < 40; ++i) {
    std::vector<std::uint8_t> image(11 * 13 * 3);
    for (auto& value : image) value = static_cast<std::uint8_t>(random());
    whole.add(image);
    parts[random() % parts.size()].add(image);
  }
  parts[2].merge(parts[0]);
  parts[2].merge(parts[1]);
  EXPECT_EQ(parts[2].result().mean, whole.result().mean);
  EXPECT_EQ(parts[2].result().std, whole.result().std);
}

TEST(PixelStatistics, DeviationWithinImagesIsAveragedOverThem) {
  // One image of one colour, one of two: deviations 0 and 100.
  PixelStatistics statistics(1, Layout::nhwc);
  statistics.add(std::vector<std::uint8_t>(64, 7));
  std::vector<std::uint8_t> two(64, 200);
  std::fill_n(two.begin(), 32, std::uint8_t{0});
  statistics.add(two);
  EXPECT_EQ(statistics.mean_picture_std(), (std::vector<double>{50.0 / 255}));

  std::mt19937_64 random(chunkio::test::test_seed());
  PixelStatistics many(3, Layout::nhwc);
  std::vector<long double> sums(3);
  for (int i = 0; i < 100; ++i) {
    std::vector<std::uint8_t> image(9 * 5 * 3);
    for (auto& value : image) value = static_cast<std::uint8_t>(random());
    many.add(image);
    const auto own = reference(image, 3);
    for (std::size_t c = 0; c < 3; ++c) sums[c] += own.std[c];
  }
  for (std::size_t c = 0; c < 3; ++c) {
    EXPECT_NEAR(many.mean_picture_std()[c], static_cast<double>(sums[c] / 100), 1e-8);
  }
  EXPECT_EQ(many.mean_picture_std().size(), 3U);
}

TEST(PixelStatistics, ValuesGiveBackTheSums) {
  PixelStatistics statistics(3, Layout::nhwc);
  statistics.add(std::vector<std::uint8_t>{1, 2, 3, 40, 50, 255});
  PixelStatistics back(3, Layout::nhwc);
  back.restore(statistics.values());
  EXPECT_EQ(back.values(), statistics.values());
  EXPECT_EQ(back.result().std, statistics.result().std);
  EXPECT_EQ(back.mean_picture_std(), statistics.mean_picture_std());
}

TEST(PixelStatistics, AreOfAllImagesWhereTheWorkAroundIsCancelled) {
  constexpr std::size_t kImages = 1000;
  std::vector<std::uint8_t> images(kImages * 3);
  std::iota(images.begin(), images.end(), std::uint8_t{0});
  PixelStatistics expected(3, Layout::nhwc);
  for (std::size_t i = 0; i < kImages; ++i) expected.add(std::span(images).subspan(3 * i, 3));

  PixelStatistics found(3, Layout::nhwc);
  tbb::task_group_context around;
  tbb::parallel_for(
      0, 1,
      [&](int) {
        around.cancel_group_execution();
        found = statistics_of(images, 3, found);
      },
      around);
  EXPECT_EQ(found.num_images(), kImages);
  EXPECT_EQ(found.values(), expected.values());
}

TEST(ImageSizes, SummaryHasTheRangeAndTheMostFrequentSizes) {
  ImageSizes sizes;
  sizes.add({30, 40}, 5);
  sizes.add({10, 90}, 7);
  sizes.add({20, 20}, 5);
  const chunkio::SourceSizes few = sizes.summary();
  EXPECT_EQ(
      (std::vector<std::int64_t>{few.min_height, few.max_height, few.min_width, few.max_width}),
      (std::vector<std::int64_t>{10, 30, 20, 90}));
  ASSERT_EQ(few.most_frequent.size(), 3U);
  EXPECT_EQ(few.most_frequent[0].images, 7);
  EXPECT_EQ(few.most_frequent[1].height, 20);  // Of two as frequent, the smaller.
  for (std::int64_t i = 0; i < 200; ++i) sizes.add({100, 100 + i}, 1 + i % 3);
  EXPECT_EQ(sizes.summary().most_frequent.size(), 64U);
  EXPECT_EQ(sizes.summary().max_width, 299);
}

TEST(PixelStatistics, NearlyConstantImagesKeepTheirSmallDeviation) {
  std::vector<std::uint8_t> pixels(4'000'000, 255);
  pixels[1234] = 254;
  PixelStatistics statistics(1, Layout::nhwc);
  statistics.add(pixels);
  const double p = 1.0 / 4e6;
  EXPECT_NEAR(statistics.result().std[0], std::sqrt(p * (1 - p)) / 255, 1e-18);
}

}  // namespace
}  // namespace h5pack
