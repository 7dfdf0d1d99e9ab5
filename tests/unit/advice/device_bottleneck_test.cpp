#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <chunkio/cuda/device_loader.hpp>

#include "support/waiting_stats.hpp"

namespace chunkio::cuda {
namespace {

using test::find_suggestion;

/// Ten seconds, half of which the consumer waited: 100 batches of 100 images of 100 kB, by way of
/// page-locked memory, of a dataset for which the device has no room.
DeviceStats waiting_stats() {
  DeviceStats stats;
  stats.batches = 100;
  stats.images = 10'000;
  stats.bytes_uploaded = 1'000'000'000;
  stats.seconds = 10;
  stats.stall_seconds = 4;
  stats.device_stall_seconds = 1;
  stats.pinned = true;
  stats.dataset_bytes = 1'000'000'000;
  stats.free_device_bytes = 500'000'000;
  // The loader of it, which waits for the disk.
  stats.loader = test::waiting_stats();
  stats.loader.stall_seconds = 0;
  stats.loader.read_seconds = 20;
  return stats;
}

TEST(DeviceBottleneck, NothingDeliveredSaysNothing) {
  EXPECT_EQ(DeviceStats{}.bottleneck().bottleneck, Bottleneck::none);
  EXPECT_TRUE(DeviceStats{}.bottleneck().evidence.empty());
}

TEST(DeviceBottleneck, HalfASecondIsTooShortToJudge) {
  for (const double uploading : {0.4, 0.0}) {  // the bus limits, or the loader
    DeviceStats stats = waiting_stats();
    stats.upload_seconds = uploading;
    stats.seconds = stats.loader.seconds = 0.49;
    stats.stall_seconds = stats.loader.stall_seconds = 0.3;
    stats.device_stall_seconds = 0;
    const std::vector<std::string> evidence = stats.bottleneck().evidence;
    EXPECT_TRUE(stats.bottleneck().too_short);
    EXPECT_EQ(std::count_if(evidence.begin(), evidence.end(),
                            [](const std::string& sentence) {
                              return sentence.find("0.49 s, too short to judge") !=
                                     std::string::npos;
                            }),
              1);
    stats.seconds = stats.loader.seconds = 0.51;
    EXPECT_FALSE(stats.bottleneck().too_short);
  }
}

TEST(DeviceBottleneck, ConsumerThatHardlyWaitsIsTheLimit) {
  DeviceStats stats = waiting_stats();
  stats.upload_seconds = 10;  // busy all the same
  stats.stall_seconds = 0.19;
  stats.device_stall_seconds = 0.1;
  EXPECT_EQ(stats.bottleneck().bottleneck, Bottleneck::consumer);
  EXPECT_TRUE(stats.bottleneck().suggestions.empty());
  stats.stall_seconds = 0.21;  // 3.1 % with the wait of the device
  EXPECT_EQ(stats.bottleneck().bottleneck, Bottleneck::bus);
}

TEST(DeviceBottleneck, StageThatNeverRestsIsTheLimit) {
  DeviceStats stats = waiting_stats();
  stats.upload_seconds = 6;
  stats.kernel_seconds = 5;
  stats.loader.stall_seconds = 4;
  EXPECT_EQ(stats.bottleneck().bottleneck, Bottleneck::bus);
  stats.kernel_seconds = 7;
  EXPECT_EQ(stats.bottleneck().bottleneck, Bottleneck::kernel);
  stats.loader.stall_seconds = 8;
  EXPECT_EQ(stats.bottleneck().bottleneck, Bottleneck::disk) << "what the loader waits for";
  EXPECT_DOUBLE_EQ(stats.bottleneck().stall, 0.5) << "of the device's consumer, not of the feed";
}

TEST(DeviceBottleneck, AmongEqualsTheBusComesFirstAndTheLoaderLast) {
  DeviceStats stats = waiting_stats();
  stats.upload_seconds = 6;
  stats.kernel_seconds = 6;
  stats.loader.stall_seconds = 6;
  EXPECT_EQ(stats.bottleneck().bottleneck, Bottleneck::bus)
      << "it has suggestions that keep the program as it is";
  stats.upload_seconds = 5;
  EXPECT_EQ(stats.bottleneck().bottleneck, Bottleneck::kernel)
      << "the loader has to be busier to be named";
}

TEST(DeviceBottleneck, EchoThatIsThereIsMultiplied) {
  DeviceStats stats = waiting_stats();
  stats.loader.stall_seconds = 9;
  const BottleneckReport once = stats.bottleneck();
  const Suggestion* const first = find_suggestion(once, "echo");
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->option, "echo = 2");
  EXPECT_NEAR(first->images_per_second, 2000, 1) << "all that is wanted";
  EXPECT_NEAR(first->stall, 0, 0.001);

  stats.echo = 3;
  const BottleneckReport more = stats.bottleneck();
  ASSERT_NE(find_suggestion(more, "echo"), nullptr);
  EXPECT_EQ(find_suggestion(more, "echo")->option, "echo = 6") << "three uses are twice too few";
}

TEST(DeviceBottleneck, EchoIsProposedOnlyWhereStorageLimitsAndTheStepIsKnown) {
  DeviceStats stats = waiting_stats();
  stats.loader.stall_seconds = 9;
  EXPECT_EQ(stats.bottleneck().bottleneck, Bottleneck::disk);
  EXPECT_NE(find_suggestion(stats.bottleneck(), "echo"), nullptr);
  stats.batches = 10'000;  // half a millisecond each: nobody trains so fast
  EXPECT_EQ(find_suggestion(stats.bottleneck(), "echo"), nullptr);
  stats.batches = 100;
  std::swap(stats.loader.read_seconds, stats.loader.decode_seconds);
  EXPECT_EQ(stats.bottleneck().bottleneck, Bottleneck::decode);
  EXPECT_EQ(find_suggestion(stats.bottleneck(), "echo"), nullptr);
  std::swap(stats.loader.read_seconds, stats.loader.decode_seconds);
  stats.upload_seconds = 9;
  EXPECT_EQ(stats.bottleneck().bottleneck, Bottleneck::bus);
  EXPECT_EQ(find_suggestion(stats.bottleneck(), "echo"), nullptr);
}

TEST(DeviceBottleneck, CuresOfTheLoaderCountImagesOfTheConsumer) {
  DeviceStats stats = waiting_stats();
  stats.loader.stall_seconds = 9;
  stats.echo = 4;
  // Each image of the loader is used four times.
  stats.loader.images = 2500;
  stats.loader.bytes_delivered = 250'000'000;
  stats.loader.bytes_read = 250'000'000;
  stats.loader.batches = 25;
  stats.loader.chunk_loads = 25;
  stats.loader.facts.spare_bytes = stats.loader.facts.image_bytes;
  const BottleneckReport found = stats.bottleneck();
  EXPECT_EQ(found.bottleneck, Bottleneck::disk);
  const Suggestion* const resident = find_suggestion(found, "resident = host");
  ASSERT_NE(resident, nullptr);
  EXPECT_NEAR(resident->images_per_second, 2000, 1);
  EXPECT_EQ(std::count_if(
                found.suggestions.begin(), found.suggestions.end(),
                [](const Suggestion& suggestion) { return suggestion.option.starts_with("echo"); }),
            1)
      << "of the device alone";
  EXPECT_EQ(find_suggestion(found, "echo")->option, "echo = 8");
}

TEST(DeviceBottleneck, ResidentDatasetsWaitForKernelOrOrder) {
  DeviceStats stats = waiting_stats();
  stats.resident = true;
  stats.pinned = false;
  stats.upload_seconds = 0;
  stats.kernel_seconds = 1;
  stats.loader.stall_seconds = 10;  // when it was read
  EXPECT_EQ(stats.bottleneck().bottleneck, Bottleneck::plan) << "next() was waited for";
  EXPECT_TRUE(stats.bottleneck().suggestions.empty());
  stats.stall_seconds = 1;
  stats.device_stall_seconds = 4;
  const BottleneckReport found = stats.bottleneck();
  EXPECT_EQ(found.bottleneck, Bottleneck::kernel);
  EXPECT_NE(find_suggestion(found, "normalize.dtype = float16"), nullptr);
  EXPECT_EQ(find_suggestion(found, "resident"), nullptr) << "it is on the device";
  stats.dtype = DType::bfloat16;
  EXPECT_EQ(find_suggestion(stats.bottleneck(), "normalize.dtype"), nullptr)
      << "it is small already";
}

TEST(DeviceBottleneck, WhatWouldHelpTheBusDependsOnTheDevice) {
  DeviceStats stats = waiting_stats();
  stats.upload_seconds = 9;
  EXPECT_NE(stats.bottleneck().evidence.front().find("page-locked"), std::string::npos);
  EXPECT_EQ(find_suggestion(stats.bottleneck(), "pin_memory"), nullptr) << "it is locked";
  EXPECT_EQ(find_suggestion(stats.bottleneck(), "resident"), nullptr) << "there is no room";
  stats.pinned = false;
  stats.free_device_bytes = stats.dataset_bytes;  // just enough
  const BottleneckReport found = stats.bottleneck();
  EXPECT_NE(find_suggestion(found, "pin_memory = require"), nullptr);
  EXPECT_NE(find_suggestion(found, "resident = require"), nullptr);
  for (const Suggestion& suggestion : found.suggestions) {
    EXPECT_GE(suggestion.stall, 0);
    EXPECT_LE(suggestion.images_per_second, 2000.5) << "more than is wanted";
  }
  stats.loader.facts.random_crops = true;
  EXPECT_EQ(find_suggestion(stats.bottleneck(), "resident"), nullptr) << "it would be an error";
}

}  // namespace
}  // namespace chunkio::cuda
