#include "pipeline/bottleneck.hpp"

#include <string>

#include <gtest/gtest.h>

namespace chunkio::pipeline {
namespace {

/// Ten seconds of two threads, half of which the consumer waited.
LoaderStats waiting_stats() {
  LoaderStats stats;
  stats.batches = 100;
  stats.num_threads = 2;
  stats.seconds = 10;
  stats.stall_seconds = 5;
  stats.bytes_read = 5'000'000'000;
  return stats;
}

const ReaderFacts kFacts{
    .source = SourceKind::mapped, .num_cpus = 2, .picture_bytes = 1000, .spare_bytes = 500};

void expect_advice(const Bottleneck& found, Bound bound, const std::string& part) {
  EXPECT_EQ(to_string(found.bound), to_string(bound)) << found.advice;
  EXPECT_NE(found.advice.find(part), std::string::npos) << "'" << part << "' in: " << found.advice;
  EXPECT_EQ(found.advice.back(), '.') << "a sentence";
  EXPECT_EQ(found.advice.find('\n'), std::string::npos);
}

TEST(Bottleneck, NothingDeliveredSaysNothing) {
  const Bottleneck found = find_bottleneck({}, kFacts);
  EXPECT_EQ(found.bound, Bound::none);
  EXPECT_TRUE(found.advice.empty());
}

TEST(Bottleneck, ConsumerThatHardlyWaitsIsTheLimit) {
  LoaderStats stats = waiting_stats();
  stats.read_seconds = 19;  // busy all the same
  stats.stall_seconds = 0.29;
  expect_advice(find_bottleneck(stats, kFacts), Bound::consumer, "nothing to gain");
  stats.stall_seconds = 0.31;
  EXPECT_EQ(find_bottleneck(stats, kFacts).bound, Bound::disk);
}

TEST(Bottleneck, LargestStageIsTheLimit) {
  LoaderStats stats = waiting_stats();
  stats.read_seconds = 3;
  stats.decode_seconds = 4;
  stats.copy_seconds = 5;
  stats.plan_seconds = 6;
  expect_advice(find_bottleneck(stats, kFacts), Bound::plan, "order");
  stats.copy_seconds = 7;
  expect_advice(find_bottleneck(stats, kFacts), Bound::copy, "Memory bandwidth");
  stats.decode_seconds = 8;
  EXPECT_EQ(find_bottleneck(stats, kFacts).bound, Bound::decode);
  stats.read_seconds = 9;
  EXPECT_EQ(find_bottleneck(stats, kFacts).bound, Bound::disk);
}

TEST(Bottleneck, DiskNamesItsRateAndTheWayOut) {
  LoaderStats stats = waiting_stats();
  stats.read_seconds = 18;
  expect_advice(find_bottleneck(stats, kFacts), Bound::disk, "500 MB/s");
  expect_advice(find_bottleneck(stats, kFacts), Bound::disk, "echo");
  ReaderFacts facts = kFacts;
  facts.spare_bytes = 1000;  // just enough
  expect_advice(find_bottleneck(stats, facts), Bound::disk, "resident = host");
  facts.resident = true;
  EXPECT_EQ(find_bottleneck(stats, facts).advice.find("resident"), std::string::npos)
      << "it is on already";
}

TEST(Bottleneck, DecodingAndCopyingWantThreadsWhileThereAreProcessors) {
  LoaderStats stats = waiting_stats();
  ReaderFacts facts = kFacts;
  facts.num_cpus = 8;
  facts.filtered = true;
  stats.decode_seconds = 18;
  expect_advice(find_bottleneck(stats, facts), Bound::decode, "num_threads");
  facts.num_cpus = 2;
  expect_advice(find_bottleneck(stats, facts), Bound::decode, "without a filter");
  facts.filtered = false;
  expect_advice(find_bottleneck(stats, facts), Bound::decode, "verify");

  stats.decode_seconds = 0;
  stats.copy_seconds = 18;
  facts.num_cpus = 3;
  expect_advice(find_bottleneck(stats, facts), Bound::copy, "num_threads to the 3 CPUs (now 2)");
}

TEST(Bottleneck, MoreThreadsDoNotHelpLibhdf5) {
  LoaderStats stats = waiting_stats();
  ReaderFacts facts = kFacts;
  facts.source = SourceKind::hdf5;
  facts.num_cpus = 8;
  stats.copy_seconds = 18;
  expect_advice(find_bottleneck(stats, facts), Bound::copy, "libhdf5");
  stats.read_seconds = 19;
  expect_advice(find_bottleneck(stats, facts), Bound::disk, "libhdf5");
}

TEST(Bottleneck, BurstsOfTheConsumerWantDepth) {
  LoaderStats stats = waiting_stats();
  stats.copy_seconds = 4;
  stats.input_wait_seconds = 1;
  stats.output_wait_seconds = 4.9;
  expect_advice(find_bottleneck(stats, kFacts), Bound::copy, "Memory bandwidth");
  stats.output_wait_seconds = 5.1;
  expect_advice(find_bottleneck(stats, kFacts), Bound::copy, "prefetch_depth");
}

}  // namespace
}  // namespace chunkio::pipeline
