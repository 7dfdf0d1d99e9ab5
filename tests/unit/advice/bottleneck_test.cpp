#include "advice/bottleneck.hpp"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "advice/prediction.hpp"
#include "support/waiting_stats.hpp"

namespace chunkio::advice {
namespace {

using test::find_suggestion;
using test::waiting_stats;

void expect_bottleneck(const LoaderStats& stats, Bottleneck bottleneck, const std::string& part) {
  const BottleneckReport found = find_bottleneck(stats);
  const std::string advice = found.summary();
  EXPECT_EQ(to_string(found.bottleneck), to_string(bottleneck)) << advice;
  EXPECT_NE(advice.find(part), std::string::npos) << "'" << part << "' in: " << advice;
  EXPECT_EQ(advice.back(), '.') << "sentences";
  EXPECT_EQ(advice.find('\n'), std::string::npos);
  EXPECT_DOUBLE_EQ(found.stall, stats.stall_seconds / stats.seconds);
}

bool sorted_by_gain(const BottleneckReport& report) {
  return std::is_sorted(report.suggestions.begin(), report.suggestions.end(),
                        [](const Suggestion& a, const Suggestion& b) {
                          return a.images_per_second > 1.02 * b.images_per_second;
                        });
}

TEST(Bottleneck, NothingDeliveredSaysNothing) {
  const BottleneckReport found = LoaderStats{}.bottleneck();
  EXPECT_EQ(found.bottleneck, Bottleneck::none);
  EXPECT_TRUE(found.evidence.empty());
  EXPECT_TRUE(found.suggestions.empty());
  EXPECT_TRUE(found.summary().empty());
}

TEST(Bottleneck, HalfASecondIsTooShortToJudge) {
  LoaderStats stats = waiting_stats();
  stats.copy_seconds = 7;
  stats.seconds = 0.49;
  stats.stall_seconds = 0.48;
  const BottleneckReport found = find_bottleneck(stats);
  EXPECT_TRUE(found.too_short);
  EXPECT_NE(found.summary().find("0.49 s, too short to judge"), std::string::npos);
  EXPECT_NE(stats.since({}).bottleneck().summary().find("too short to judge"), std::string::npos);
  stats.seconds = 0.51;
  EXPECT_FALSE(find_bottleneck(stats).too_short);
  EXPECT_EQ(find_bottleneck(stats).summary().find("too short"), std::string::npos);
}

TEST(Bottleneck, EchoIsForStorageAndForConsumersThatTrain) {
  LoaderStats stats = waiting_stats();
  stats.read_seconds = 9;
  stats.stall_seconds = 8.7;  // it wants 7.7 times as much
  ASSERT_NE(find_suggestion(find_bottleneck(stats), "echo"), nullptr);
  EXPECT_EQ(find_suggestion(find_bottleneck(stats), "echo")->option, "echo = 8");
  stats.stall_seconds = 8.9;  // 9.1 times: nothing that trains
  EXPECT_EQ(find_suggestion(find_bottleneck(stats), "echo"), nullptr);

  stats.stall_seconds = 5;
  ASSERT_NE(find_suggestion(find_bottleneck(stats), "echo"), nullptr);
  stats.batches = 10'000;
  EXPECT_EQ(find_suggestion(find_bottleneck(stats), "echo"), nullptr)
      << "half a millisecond is no step";
  stats.batches = 100;
  stats.copy_seconds = 10;
  EXPECT_EQ(find_suggestion(find_bottleneck(stats), "echo"), nullptr)
      << "memory limits, not storage";
  stats.decode_seconds = 11;
  EXPECT_EQ(find_suggestion(find_bottleneck(stats), "echo"), nullptr)
      << "decoding limits, not storage";
}

TEST(Bottleneck, ConsumerThatHardlyWaitsIsTheLimit) {
  LoaderStats stats = waiting_stats();
  stats.read_seconds = 19;  // busy all the same
  stats.stall_seconds = 0.29;
  expect_bottleneck(stats, Bottleneck::consumer, "nothing to gain");
  EXPECT_TRUE(find_bottleneck(stats).suggestions.empty());
  stats.stall_seconds = 0.31;
  EXPECT_EQ(find_bottleneck(stats).bottleneck, Bottleneck::disk);
}

TEST(Bottleneck, LargestStageIsTheLimit) {
  LoaderStats stats = waiting_stats();
  stats.read_seconds = 3;
  stats.decode_seconds = 4;
  stats.copy_seconds = 5;
  stats.plan_seconds = 6;
  expect_bottleneck(stats, Bottleneck::plan, "order");
  stats.copy_seconds = 7;
  expect_bottleneck(stats, Bottleneck::copy, "100 MB/s");
  stats.decode_seconds = 8;
  expect_bottleneck(stats, Bottleneck::decode, "digests");
  stats.read_seconds = 9;
  expect_bottleneck(stats, Bottleneck::disk, "Storage");
}

TEST(Bottleneck, DiskNamesItsRateAndTheOneThatIsWanted) {
  LoaderStats stats = waiting_stats();
  stats.read_seconds = 20;
  expect_bottleneck(stats, Bottleneck::disk, "100 MB/s");
  expect_bottleneck(stats, Bottleneck::disk, "200 MB/s");
  const BottleneckReport found = find_bottleneck(stats);
  EXPECT_TRUE(sorted_by_gain(found));
  ASSERT_NE(find_suggestion(found, "echo"), nullptr);
  EXPECT_EQ(find_suggestion(found, "echo")->option, "echo = 2");
  EXPECT_NEAR(find_suggestion(found, "echo")->stall, 0, 0.02);
  ASSERT_NE(find_suggestion(found, "disk that delivers"), nullptr);
  EXPECT_NEAR(find_suggestion(found, "disk that delivers")->stall, 0, 0.02);
  EXPECT_EQ(find_suggestion(found, "num_threads"), nullptr) << "all CPUs have one";
  EXPECT_EQ(find_suggestion(found, "resident"), nullptr) << "does not fit";
}

TEST(Bottleneck, MemoryThatHoldsTheImagesIsTheBestCureOfADisk) {
  LoaderStats stats = waiting_stats();
  stats.read_seconds = 18;
  stats.copy_seconds = 2;
  stats.facts.spare_bytes = stats.facts.image_bytes;  // just enough
  expect_bottleneck(stats, Bottleneck::disk, "resident = host");
  EXPECT_EQ(find_bottleneck(stats).suggestions.front().option, "resident = host");
  // 10,000 images took their workers one second of copying.
  EXPECT_NEAR(find_bottleneck(stats).suggestions.front().images_per_second, 2000, 1)
      << "all that is wanted";
  EXPECT_NEAR(find_bottleneck(stats).suggestions.front().stall, 0, 0.001);
  stats.facts.resident = Resident::host;
  EXPECT_EQ(find_suggestion(find_bottleneck(stats), "resident"), nullptr) << "it is on already";
  stats.facts.resident = Resident::none;
  stats.facts.random_crops = true;
  EXPECT_EQ(find_suggestion(find_bottleneck(stats), "resident"), nullptr) << "it would be an error";
}

TEST(Bottleneck, PredictionsAreThoseOfTheModel) {
  // Workers decode all the time: 1000 images a second, of which the consumer takes 2000.
  LoaderStats stats = waiting_stats();
  stats.facts.filtered = true;
  stats.facts.num_cpus = 3;
  stats.bytes_read = 250'000'000;
  stats.decode_seconds = 20;
  expect_bottleneck(stats, Bottleneck::decode, "50 MB/s of pixels");
  const BottleneckReport found = find_bottleneck(stats);
  EXPECT_TRUE(sorted_by_gain(found));
  const Suggestion* const threads = find_suggestion(found, "num_threads to the 3 CPUs (now 2)");
  ASSERT_NE(threads, nullptr);
  EXPECT_EQ(threads->option, "num_threads = 3");
  EXPECT_NEAR(threads->images_per_second, 1500, 1);
  EXPECT_NEAR(threads->stall, 0.25, 0.001);
  const Suggestion* const unfiltered = find_suggestion(found, "without a filter");
  ASSERT_NE(unfiltered, nullptr);
  EXPECT_NEAR(unfiltered->stall, 0, 0.001) << "nothing else takes time";
  stats.facts.encoded = true;
  EXPECT_NE(find_suggestion(find_bottleneck(stats), "instead of encoded images"), nullptr);
  EXPECT_EQ(find_suggestion(find_bottleneck(stats), "random_resized_crop"), nullptr);
  stats.facts.random_crops = true;
  EXPECT_NE(find_suggestion(find_bottleneck(stats), "random_resized_crop"), nullptr);
}

TEST(Bottleneck, WhatAStageDoesAloneReplacesWhatTheCountersSay) {
  LoaderStats stats = waiting_stats();
  stats.facts.filtered = true;
  stats.bytes_read = 250'000'000;
  stats.decode_seconds = 20;
  MachineRates measured = observe(stats).rates;
  // Without the filter four times as much is read, and this disk has 150 MB/s for it.
  measured.disk.bytes_per_second = 150e6;
  const BottleneckReport found = find_bottleneck(stats, measured);
  const Suggestion* const unfiltered = find_suggestion(found, "without a filter");
  ASSERT_NE(unfiltered, nullptr);
  EXPECT_NEAR(unfiltered->images_per_second, 1500, 1);
  EXPECT_NEAR(unfiltered->stall, 0.25, 0.001);
}

TEST(Bottleneck, APipelineBelowItsBoundIsPredictedToStayBelow) {
  LoaderStats stats = waiting_stats();
  stats.facts.num_cpus = 4;
  stats.copy_seconds = 16;
  stats.input_wait_seconds = 4;  // a fifth of the time
  const BottleneckReport found = find_bottleneck(stats);
  const Suggestion* const threads = find_suggestion(found, "num_threads");
  ASSERT_NE(threads, nullptr);
  EXPECT_NEAR(threads->images_per_second, 2000, 1) << "twice what it is, not what it could be";
}

TEST(Bottleneck, DigestsNeedNotAlwaysBeCompared) {
  LoaderStats stats = waiting_stats();
  stats.decode_seconds = 18;
  stats.copy_seconds = 2;
  stats.facts.verify = Verify::always;
  expect_bottleneck(stats, Bottleneck::decode, "verify = first_epoch");
  EXPECT_EQ(find_bottleneck(stats).suggestions.front().option, "verify = first_epoch");
  stats.facts.verify = Verify::first_epoch;
  EXPECT_EQ(find_bottleneck(stats).suggestions.front().option, "verify = off");
}

TEST(Bottleneck, MoreThreadsDoNotHelpLibhdf5) {
  LoaderStats stats = waiting_stats();
  stats.facts.source = SourceKind::hdf5;
  stats.facts.num_cpus = 8;
  stats.copy_seconds = 18;
  expect_bottleneck(stats, Bottleneck::copy, "libhdf5");
  EXPECT_EQ(find_suggestion(find_bottleneck(stats), "num_threads"), nullptr);
  stats.read_seconds = 19;
  stats.copy_seconds = 1;
  expect_bottleneck(stats, Bottleneck::disk, "h5pack");
  EXPECT_EQ(find_suggestion(find_bottleneck(stats), "num_threads"), nullptr);
}

/// One worker that does nothing but wait: 10 ms for each of 1000 row groups of ten images, and a
/// consumer that would take ten times as much.
LoaderStats one_request_at_a_time() {
  LoaderStats stats = waiting_stats();
  stats.chunk_loads = 1000;
  stats.facts.group_samples = 10;
  stats.facts.source = SourceKind::scatter;
  stats.num_threads = 1;
  stats.read_seconds = 10;
  stats.stall_seconds = 9;
  return stats;
}

TEST(Bottleneck, WhereNothingIsReadAheadMoreThreadsWaitAtTheSameTime) {
  EXPECT_EQ(find_suggestion(find_bottleneck(one_request_at_a_time()), "num_threads"), nullptr)
      << "what is read ahead is under way whatever the threads do";
  for (const bool direct : {true, false}) {
    LoaderStats stats = one_request_at_a_time();
    stats.facts.reads_ahead = !direct;
    if (!direct) stats.facts.order = OrderMode::random;
    const Observed observed = observe(stats);
    EXPECT_EQ(observed.plan.read_ahead_bytes, 0);
    EXPECT_DOUBLE_EQ(observed.rates.disk.request_seconds, 0.01);
    const BottleneckReport found = find_bottleneck(stats);
    EXPECT_EQ(found.bottleneck, Bottleneck::disk);
    const Suggestion* const threads = find_suggestion(found, "num_threads");
    ASSERT_NE(threads, nullptr);
    EXPECT_EQ(threads->option, "num_threads = 16") << "of 2 CPUs: more than ten wait";
    EXPECT_NEAR(threads->images_per_second, 10'000, 1) << "all that is wanted";
    ASSERT_NE(find_suggestion(found, "in 0.909 ms each"), nullptr) << "a faster disk";
  }
}

TEST(Bottleneck, LatencyThatIsKnownIsSharedByLargerChunks) {
  LoaderStats stats = one_request_at_a_time();
  stats.facts.reads_ahead = false;
  EXPECT_EQ(find_suggestion(find_bottleneck(stats), "in chunks of"), nullptr)
      << "it could be bandwidth, which larger chunks do not change";
  MachineRates measured = observe(stats).rates;
  measured.disk = {.bytes_per_second = 1e9, .request_seconds = 0.009};
  const BottleneckReport found = find_bottleneck(stats, measured);
  const Suggestion* const chunks = find_suggestion(found, "in chunks of 4096 KiB (now 977 KiB)");
  ASSERT_NE(chunks, nullptr);
  // 42 images of 0.1 ms each in a request of 9 ms.
  EXPECT_NEAR(chunks->images_per_second, 42 / 0.0132, 42 / 0.0132 * 0.02);

  measured.disk = {.bytes_per_second = 1e8, .request_seconds = 0};
  EXPECT_EQ(find_suggestion(find_bottleneck(stats, measured), "in chunks of"), nullptr)
      << "it is bandwidth";
  stats.facts.order = OrderMode::random;
  measured.disk = {.bytes_per_second = 1e9, .request_seconds = 0.009};
  EXPECT_EQ(find_suggestion(find_bottleneck(stats, measured), "in chunks of"), nullptr)
      << "rows are read one by one";
}

TEST(Bottleneck, RandomOrderReadsAChunkForEveryImage) {
  LoaderStats stats = waiting_stats();
  stats.facts.order = OrderMode::random;
  stats.facts.filtered = true;
  stats.chunk_loads = stats.images;
  stats.bytes_read = 100'000'000'000;
  stats.decode_seconds = 20;
  const BottleneckReport found = find_bottleneck(stats);
  EXPECT_EQ(found.bottleneck, Bottleneck::decode);
  ASSERT_FALSE(found.suggestions.empty());
  EXPECT_EQ(found.suggestions.front().option, "order = chunk_shuffled");
  EXPECT_NEAR(found.suggestions.front().stall, 0, 0.001) << "a hundredth of the work";
}

TEST(Bottleneck, BurstsOfTheConsumerWantBuffers) {
  LoaderStats stats = waiting_stats();
  stats.copy_seconds = 4;
  stats.input_wait_seconds = 1;
  stats.output_wait_seconds = 4.9;
  EXPECT_EQ(find_bottleneck(stats).bottleneck, Bottleneck::copy);
  stats.output_wait_seconds = 5.1;
  expect_bottleneck(stats, Bottleneck::buffers, "prefetch_depth");
  EXPECT_EQ(find_bottleneck(stats).suggestions.front().option, "prefetch_depth = 16");
}

TEST(Bottleneck, AConsumerThatTakesNoTimeIsToldImagesASecond) {
  LoaderStats stats = waiting_stats();
  stats.stall_seconds = stats.seconds;
  stats.read_seconds = 20;
  const BottleneckReport found = find_bottleneck(stats);
  EXPECT_EQ(found.bottleneck, Bottleneck::disk);
  ASSERT_FALSE(found.suggestions.empty());
  EXPECT_EQ(found.suggestions.front().stall, 1.0);
  EXPECT_GT(found.suggestions.front().images_per_second, 1500);
  EXPECT_EQ(find_suggestion(found, "echo"), nullptr) << "nobody knows how often";

  stats.batches = 10'000;
  stats.stall_seconds = 9;  // a tenth of a millisecond a batch may be a step
  EXPECT_NE(find_bottleneck(stats).summary().find("would take 1.00 GB/s"), std::string::npos);
  stats.stall_seconds = 9.01;  // less is a loop that counts
  const std::string advice = find_bottleneck(stats).summary();
  EXPECT_EQ(advice.find("would take"), std::string::npos) << advice;
  EXPECT_EQ(find_bottleneck(stats).suggestions.front().stall, 1.0);
}

}  // namespace
}  // namespace chunkio::advice
