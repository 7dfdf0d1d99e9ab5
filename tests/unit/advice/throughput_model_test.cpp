#include <cmath>
#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include <chunkio/tuning.hpp>

#include "support/errors.hpp"

namespace chunkio {
namespace {

/// 1 ms to copy a row group of 10 images of 1,000 bytes, nothing else takes time.
MachineRates quick() {
  MachineRates rates;
  rates.copy_bytes_per_second = 1e7;
  rates.memory_bytes_per_second = 0;
  rates.decode_bytes_per_second = 1e7;
  rates.group_seconds = 0;
  rates.row_seconds = 0;
  rates.num_cpus = 4;
  return rates;
}

ReadingPlan groups_of_ten() {
  ReadingPlan plan;
  plan.sample_bytes = 1000;
  plan.samples_per_group = 10;
  plan.request_bytes = 10'000;
  plan.batch_size = 100;
  plan.read_ahead_bytes = 40'000;
  return plan;
}

TEST(ThroughputModel, WithoutADiskCopyingLimitsAndAConsumerWithoutWorkOnlyWaits) {
  const Throughput found = predict_throughput(quick(), groups_of_ten());
  EXPECT_DOUBLE_EQ(found.loader_images_per_second, 10'000);
  EXPECT_DOUBLE_EQ(found.images_per_second, 10'000);
  EXPECT_EQ(found.bottleneck, Bottleneck::copy);
  EXPECT_TRUE(std::isinf(found.disk_images_per_second));
  EXPECT_TRUE(std::isinf(found.decode_images_per_second));
  EXPECT_TRUE(std::isinf(found.bus_images_per_second));
  EXPECT_DOUBLE_EQ(found.stall, 1);
  EXPECT_EQ(found.echo, 1);
}

TEST(ThroughputModel, ThreadsHelpUpToTheProcessors) {
  ReadingPlan plan = groups_of_ten();
  plan.num_threads = 3;
  EXPECT_DOUBLE_EQ(predict_throughput(quick(), plan).loader_images_per_second, 30'000);
  plan.num_threads = 8;
  EXPECT_DOUBLE_EQ(predict_throughput(quick(), plan).loader_images_per_second, 40'000);
}

TEST(ThroughputModel, MemoryLimitsAllThreadsTogether) {
  MachineRates rates = quick();
  rates.memory_bytes_per_second = 2.5e7;
  ReadingPlan plan = groups_of_ten();
  plan.num_threads = 4;
  EXPECT_DOUBLE_EQ(predict_throughput(rates, plan).loader_images_per_second, 25'000);
}

TEST(ThroughputModel, DecodingAndCopyingShareAProcessor) {
  ReadingPlan plan = groups_of_ten();
  plan.decoded_bytes = 30'000;  // 3 ms beside 1 ms of copying
  const Throughput found = predict_throughput(quick(), plan);
  EXPECT_DOUBLE_EQ(found.loader_images_per_second, 2'500);
  EXPECT_EQ(found.bottleneck, Bottleneck::decode);
}

TEST(ThroughputModel, LatencyOfRequestsOverlapsAsDeepAsTheQueue) {
  MachineRates rates = quick();
  rates.disk = {.bytes_per_second = 1e7, .request_seconds = 9e-3, .queue_depth = 1};
  ReadingPlan plan = groups_of_ten();
  // 9 ms to answer, 1 ms to transfer.
  EXPECT_DOUBLE_EQ(predict_throughput(rates, plan).loader_images_per_second, 1'000);
  EXPECT_EQ(predict_throughput(rates, plan).bottleneck, Bottleneck::disk);
  rates.disk.queue_depth = 3;
  EXPECT_DOUBLE_EQ(predict_throughput(rates, plan).loader_images_per_second, 3'000);
  // Four requests fit into what is read ahead.
  rates.disk.queue_depth = 0;
  EXPECT_DOUBLE_EQ(predict_throughput(rates, plan).loader_images_per_second, 4'000);
  // With as much under way as there can be, bytes share the bandwidth.
  plan.read_ahead_bytes = 1'000'000;
  EXPECT_DOUBLE_EQ(predict_throughput(rates, plan).disk_images_per_second, 10'000);
}

TEST(ThroughputModel, AdjacentRequestsHaveNoLatency) {
  MachineRates rates = quick();
  rates.disk = {.bytes_per_second = 0.5e7, .request_seconds = 1, .queue_depth = 1};
  ReadingPlan plan = groups_of_ten();
  plan.adjacent = true;
  EXPECT_DOUBLE_EQ(predict_throughput(rates, plan).loader_images_per_second, 5'000);
}

TEST(ThroughputModel, LargerRequestsHideLatency) {
  MachineRates rates = quick();
  rates.copy_bytes_per_second = 1e12;
  rates.disk = {.bytes_per_second = 1e8, .request_seconds = 10e-3, .queue_depth = 1};
  double before = 0;
  for (std::int64_t samples = 1; samples <= 1 << 14; samples *= 2) {
    ReadingPlan plan = groups_of_ten();
    plan.samples_per_group = samples;
    plan.request_bytes = samples * plan.sample_bytes;
    const double now = predict_throughput(rates, plan).loader_images_per_second;
    EXPECT_GT(now, before);
    EXPECT_LT(now, 1e8 / 1000);
    before = now;
  }
  EXPECT_GT(before, 0.9 * 1e8 / 1000);
}

TEST(ThroughputModel, WithoutReadAheadAWorkerWaitsForItsOwnRequest) {
  MachineRates rates = quick();
  rates.disk = {.bytes_per_second = 1e9, .request_seconds = 3e-3 - 10e-6, .queue_depth = 0};
  ReadingPlan plan = groups_of_ten();
  plan.read_ahead_bytes = 0;
  // 3 ms for the disk, then 1 ms to copy.
  EXPECT_NEAR(predict_throughput(rates, plan).loader_images_per_second, 2'500, 1e-6);
  plan.num_threads = 2;
  EXPECT_NEAR(predict_throughput(rates, plan).loader_images_per_second, 5'000, 1e-6);
}

TEST(ThroughputModel, ASlowConsumerIsTheBound) {
  ReadingPlan plan = groups_of_ten();
  plan.step_seconds = 0.1;  // 1,000 images a second; the loader has ten times that
  const Throughput found = predict_throughput(quick(), plan);
  EXPECT_EQ(found.bottleneck, Bottleneck::consumer);
  EXPECT_DOUBLE_EQ(found.images_per_second, 1'000);
  EXPECT_DOUBLE_EQ(found.stall, 0);
  EXPECT_EQ(found.echo, 1);
}

TEST(ThroughputModel, EchoMakesUpForWhatTheLoaderLacks) {
  MachineRates rates = quick();
  rates.disk = {.bytes_per_second = 2.4e6, .request_seconds = 0, .queue_depth = 1};
  ReadingPlan plan = groups_of_ten();
  plan.step_seconds = 0.01;  // 10,000 images a second; the disk has 2,400
  const Throughput found = predict_throughput(rates, plan);
  EXPECT_EQ(found.bottleneck, Bottleneck::disk);
  EXPECT_NEAR(found.stall, 0.76, 1e-12);
  EXPECT_EQ(found.echo, 5);
}

TEST(ThroughputModel, EchoOfAStepThatTakesNextToNoTimeIsANumber) {
  ReadingPlan plan = groups_of_ten();
  plan.step_seconds = 1e-300;
  EXPECT_EQ(predict_throughput(quick(), plan).echo, 1'000'000'000'000'000);
}

TEST(ThroughputModel, ABusIsAStage) {
  MachineRates rates = quick();
  rates.bus_bytes_per_second = 1e6;
  const Throughput found = predict_throughput(rates, groups_of_ten());
  EXPECT_EQ(found.bottleneck, Bottleneck::bus);
  EXPECT_DOUBLE_EQ(found.images_per_second, 1'000);
}

TEST(ThroughputModel, ImpossibleNumbersAreRefused) {
  const auto refused = [](auto change, const char* named) {
    MachineRates rates = quick();
    ReadingPlan plan = groups_of_ten();
    change(rates, plan);
    const std::string message = test::refusal([&] { (void)predict_throughput(rates, plan); });
    EXPECT_NE(message.find(named), std::string::npos) << message;
  };
  refused([](auto& rates, auto&) { rates.copy_bytes_per_second = 0; }, "copy_bytes_per_second");
  refused([](auto& rates, auto&) { rates.decode_bytes_per_second = NAN; }, "decode_bytes");
  refused([](auto& rates, auto&) { rates.memory_bytes_per_second = -1; }, "memory_bytes");
  refused([](auto& rates, auto&) { rates.disk.request_seconds = -1; }, "request_seconds");
  refused([](auto& rates, auto&) { rates.num_cpus = 0; }, "num_cpus");
  refused([](auto&, auto& plan) { plan.sample_bytes = 0; }, "sample_bytes");
  refused([](auto&, auto& plan) { plan.samples_per_group = 0; }, "samples_per_group");
  refused([](auto&, auto& plan) { plan.request_bytes = 0; }, "request_bytes");
  refused([](auto&, auto& plan) { plan.num_threads = 0; }, "num_threads");
  refused([](auto&, auto& plan) { plan.batch_size = 0; }, "batch_size");
  refused([](auto&, auto& plan) { plan.step_seconds = -1; }, "step_seconds");
}

}  // namespace
}  // namespace chunkio
