// What the statistics of a DeviceLoader say its consumer waits for. On a simulated GPU alone: the pace
// of a device would count, too.
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "support/device_loader_fixture.hpp"
#include "support/waiting_stats.hpp"

namespace chunkio::cuda {
namespace {

using test::DeviceLoaderTest;

TEST_F(DeviceLoaderTest, StatisticsNameWhatTheConsumerWaitsFor) {
  using std::chrono::milliseconds;
  struct Pace {
    milliseconds copy = {}, kernel = {}, consumer = {};
  };
  const auto stats_once = [&](const Pace& pace, DeviceOptions options, const LoaderOptions& host) {
    gpu_->slow_down(pace.copy, pace.kernel);
    options.normalize = plain();
    DeviceLoader loader = device_loader(options, host);
    EXPECT_EQ(loader.stats().bottleneck().bottleneck, Bottleneck::none);
    for (const std::int64_t epoch : {0, 1}) {
      loader.start_epoch(epoch);
      while (const auto batch = loader.next(stream_)) {
        if (pace.consumer > milliseconds{}) {
          gpu_->run_on(stream_, [pace] { std::this_thread::sleep_for(pace.consumer); });
        }
      }
    }
    gpu_->slow_down({}, {});
    return loader.stats();
  };
  // A busy machine delays any thread for longer than the pace that is set here. It does not do so
  // every time; a statistic that names something else does.
  const auto stats_at = [&](Bottleneck wanted, const Pace& pace, const DeviceOptions& options,
                            const LoaderOptions& host) {
    constexpr int kTries = 8;
    DeviceStats stats;
    for (int i = 0; i < kTries && stats.bottleneck().bottleneck != wanted; ++i) {
      stats = stats_once(pace, options, host);
    }
    EXPECT_EQ(to_string(stats.bottleneck().bottleneck), to_string(wanted))
        << stats.bottleneck().summary() << " " << stats.stall_seconds << " + "
        << stats.device_stall_seconds << " of " << stats.seconds;
    return stats;
  };
  // Such runs may be too short for advice; what was found is there all the same.
  const auto names = [](const DeviceStats& stats, const std::string& part) {
    return test::find_suggestion(stats.bottleneck(), part) != nullptr;
  };
  const DeviceOptions from_host{.resident = DeviceResident::off};
  gpu_->set_capacity(kDatasetBytes - 1);

  // A batch has a copy of images and one of labels.
  const DeviceStats bus =
      stats_at(Bottleneck::bus, {.copy = milliseconds(8)}, from_host, loader_options());
  EXPECT_GT(bus.upload_seconds, 20 * 0.016);
  EXPECT_TRUE(bus.pinned);
  EXPECT_FALSE(names(bus, "pin_memory")) << "it is locked";

  const DeviceStats with_work =
      stats_at(Bottleneck::bus, {.copy = milliseconds(8), .consumer = milliseconds(8)}, from_host,
               loader_options());
  EXPECT_FALSE(names(with_work, "echo = "));
  EXPECT_FALSE(names(with_work, "resident")) << "there is no room";

  const DeviceStats pageable =
      stats_at(Bottleneck::bus, {.copy = milliseconds(8)},
               {.pin_memory = PinMemory::off, .resident = DeviceResident::off}, loader_options());
  EXPECT_TRUE(names(pageable, "pin_memory"));

  const DeviceStats consumer =
      stats_at(Bottleneck::consumer, {.consumer = milliseconds(40)}, from_host, loader_options());
  EXPECT_TRUE(consumer.bottleneck().suggestions.empty());

  const DeviceStats kernel =
      stats_at(Bottleneck::kernel, {.kernel = milliseconds(15)}, from_host, loader_options());
  EXPECT_GT(kernel.kernel_seconds, 20 * 0.015);
  EXPECT_TRUE(names(kernel, "float16"));

  gpu_->set_capacity(1 << 30);
  static_cast<void>(stats_at(Bottleneck::kernel, {.kernel = milliseconds(15)},
                             {.resident = DeviceResident::require}, loader_options()));

#if !defined(__SANITIZE_THREAD__)  // which makes the simulated kernel slower than any decoding
  // Every image costs that all are decoded: the loader, and of it decoding.
  path_ = folder_.file("deflated.h5");
  test::write_packed(path_, {.num_samples = 47,
                             .height = 200,
                             .width = 200,
                             .chunk_samples = 47,
                             .filter = {.deflate_level = 1}});
  LoaderOptions random = loader_options();
  random.order.mode = OrderMode::random;
  const DeviceStats loader = stats_at(Bottleneck::decode, {}, from_host, random);
  EXPECT_TRUE(names(loader, "order = chunk_shuffled"));
  EXPECT_TRUE(names(loader, "resident = require")) << "it would fit";
#endif
}

}  // namespace
}  // namespace chunkio::cuda
