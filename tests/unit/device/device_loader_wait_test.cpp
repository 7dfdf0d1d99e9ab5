// What a DeviceLoader and its consumer wait for.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/device_loader_fixture.hpp"

namespace chunkio::cuda {
namespace {

using test::Delivered;
using test::DeviceLoaderTest;
using test::expect_error;

TEST_F(DeviceLoaderTest, ABufferIsNotWrittenWhileAStreamUsesIt) {
  const Stream other = gpu_->create_stream();
  for (const Stream used : {stream_, other}) {
    const DeviceOptions options{.normalize = augmented(), .max_held = used == other ? 1 : 2};
    const std::vector<Delivered> wanted = expected(options, 0);
    DeviceLoader loader = device_loader(options);
    loader.start_epoch(0);
    std::vector<std::vector<std::byte>> seen(wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      auto batch = loader.next(stream_);
      ASSERT_TRUE(batch);
      if (used == other) {
        gpu_->synchronize(stream_);  // It is there.
        batch->use_on(other);
      }
      seen[i].resize(wanted[i].images.size());
      // Training: asynchronous, and slower than the loader. The lease ends long before.
      gpu_->run_on(used, [&bytes = seen[i], data = batch->images().data()] {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        std::memcpy(bytes.data(), data, bytes.size());
      });
    }
    gpu_->synchronize(used);
    for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_EQ(seen[i], wanted[i].images) << i;
  }
  gpu_->destroy_stream(other);
}

TEST_F(DeviceLoaderTest, ABufferIsNotWrittenWhileAnyOfSeveralStreamsUsesIt) {
  const DeviceOptions options{.normalize = augmented(), .max_held = 1};
  const std::vector<Delivered> wanted = expected(options, 0);
  const std::array<Stream, 3> streams = {stream_, gpu_->create_stream(), gpu_->create_stream()};
  {
    DeviceLoader loader = device_loader(options);
    loader.start_epoch(0);
    std::vector<std::array<std::vector<std::byte>, 3>> seen(wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const auto batch = loader.next(stream_);
      ASSERT_TRUE(batch);
      for (std::size_t s = 0; s < streams.size(); ++s) {
        batch->use_on(streams[s]);  // which waits until it is there
        seen[i][s].resize(wanted[i].images.size());
        gpu_->run_on(streams[s], [s, &bytes = seen[i][s], data = batch->images().data()] {
          std::this_thread::sleep_for(std::chrono::milliseconds(2 * s));
          std::memcpy(bytes.data(), data, bytes.size());
        });
      }
    }
    for (const Stream stream : streams) gpu_->synchronize(stream);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      for (const auto& bytes : seen[i]) EXPECT_EQ(bytes, wanted[i].images) << i;
    }
  }
  for (std::size_t s = 1; s < streams.size(); ++s) gpu_->destroy_stream(streams[s]);
}

TEST_F(DeviceLoaderTest, HeldBatchesKeepTheirContentsAndOutliveTheLoader) {
  const DeviceOptions options{
      .normalize = augmented(), .max_held = 3, .release_timeout_seconds = 0};
  const std::vector<Delivered> wanted = expected(options, 0);
  std::vector<DeviceBatch> held;
  {
    DeviceLoader loader = device_loader(options);
    loader.start_epoch(0);
    for (int i = 0; i < 3; ++i) held.push_back(*loader.next(stream_));
    expect_error(
        ErrorCode::timed_out,
        {"all 3", "batch 0 of epoch 0, batch 1 of epoch 0, batch 2 of epoch 0", "max_held"},
        [&] { static_cast<void>(loader.next(stream_)); });
    held.erase(held.begin() + 1);
    const auto next = loader.next(stream_);
    ASSERT_TRUE(next);
    EXPECT_EQ(read(*next), wanted[3]) << "an error that was mended loses nothing";
  }
  EXPECT_EQ(read(held[0]), wanted[0]);
  EXPECT_EQ(read(held[1]), wanted[2]);
  EXPECT_NE(held[0].images().data(), held[1].images().data());
}

/// Work that ends when it is told to.
class Blocker {
 public:
  Blocker(test::WatchedGpu& gpu, Stream stream) {
    gpu.run_on(stream, [ended = ended_.get_future().share()] { ended.wait(); });
  }
  Blocker(const Blocker&) = delete;
  Blocker& operator=(const Blocker&) = delete;
  ~Blocker() { end(); }
  void end() {
    if (!std::exchange(over_, true)) ended_.set_value();
  }

 private:
  std::promise<void> ended_;
  bool over_ = false;
};

TEST_F(DeviceLoaderTest, ABatchIsMadeWhileTheConsumerUsesTheOneBefore) {
  const DeviceOptions options{.normalize = augmented(), .max_held = 2};
  const std::vector<Delivered> wanted = expected(options, 0);
  DeviceLoader loader = device_loader(options);
  loader.start_epoch(0);
  ASSERT_TRUE(loader.next(stream_));
  std::optional<DeviceBatch> used = loader.next(stream_);
  Blocker training(*gpu_, stream_);
  used.reset();
  const Stream other = gpu_->create_stream();
  {
    const auto batch = loader.next(other);
    ASSERT_TRUE(batch);
    std::vector<std::byte> seen(wanted[2].images.size());
    std::promise<void> read;
    gpu_->run_on(other, [&, data = batch->images().data()] {
      std::memcpy(seen.data(), data, seen.size());
      read.set_value();
    });
    EXPECT_EQ(read.get_future().wait_for(std::chrono::seconds(30)), std::future_status::ready)
        << "its kernel waits for the training on the batch before";
    training.end();
    gpu_->synchronize(other);
    EXPECT_EQ(seen, wanted[2].images);
  }
  gpu_->synchronize(other);
  gpu_->destroy_stream(other);
}

TEST_F(DeviceLoaderTest, ABatchThatAnotherThreadReleasesIsWaitedFor) {
  const DeviceOptions options{.normalize = augmented(),
                              .echo_buffer_batches = 12,
                              .max_held = 1,
                              .release_timeout_seconds = 60};
  const std::vector<Delivered> wanted = expected(options, 0);
  DeviceLoader loader = device_loader(options);
  loader.start_epoch(0);
  std::optional<DeviceBatch> held = loader.next(stream_);
  ASSERT_TRUE(held);
  const double stall = loader.stats().stall_seconds;
  const auto start = std::chrono::steady_clock::now();
  const std::jthread releases([&held] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    held.reset();
  });
  const auto next = loader.next(stream_);
  const auto waited = std::chrono::steady_clock::now() - start;
  EXPECT_GE(waited, std::chrono::milliseconds(20));
  EXPECT_LT(waited, std::chrono::seconds(30)) << "to the limit";
  ASSERT_TRUE(next);
  EXPECT_EQ(read(*next), wanted[1]);
  EXPECT_EQ(loader.stats().stall_seconds, stall) << "the images were there";
}

TEST_F(DeviceLoaderTest, ABatchThatIsNeverReleasedIsWaitedForToALimit) {
  const DeviceOptions options{
      .normalize = augmented(), .max_held = 1, .release_timeout_seconds = 0.05};
  DeviceLoader loader = device_loader(options);
  loader.start_epoch(2);
  const auto held = loader.next(stream_);
  ASSERT_TRUE(held);
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 2; ++i) {
    expect_error(ErrorCode::timed_out,
                 {"all 1", "max_held", "0.05 s", "release_timeout_seconds", "batch 0 of epoch 2"},
                 [&] { static_cast<void>(loader.next(stream_)); });
  }
  const auto waited = std::chrono::steady_clock::now() - start;
  EXPECT_GE(waited, std::chrono::milliseconds(2 * 50));
  EXPECT_LT(waited, std::chrono::seconds(5)) << "the limit is not the default";
}

TEST_F(DeviceLoaderTest, AWaitCanBeEndedAndGoesOn) {
  struct Stop {};
  // For storage, for a batch that is held, and for the consumer's stream.
  for (const int what : {0, 1, 2}) {
    int calls = 0;
    DeviceOptions options{.normalize = augmented(), .max_held = 1, .resident = DeviceResident::off};
    options.on_wait = [&calls] {
      if (++calls <= 2) throw Stop{};
    };
    LoaderOptions host = loader_options();
    if (what == 0) {
      host.io.disk_limit =
          DiskLimit{.bytes_per_second = 1e9, .request_seconds = 0.5, .queue_depth = 1};
    }
    DeviceLoader loader = device_loader(options, host);
    loader.start_epoch(1);
    std::optional<DeviceBatch> held;
    std::optional<Blocker> training;
    if (what != 0) held = loader.next(stream_);
    if (what == 2) {
      gpu_->synchronize(stream_);
      training.emplace(*gpu_, stream_);
      held.reset();
      held = loader.next(stream_);  // its kernel waits for training, and the one after it for that
      held.reset();
    }
    for (int i = 0; i < 2; ++i) {
      EXPECT_THROW(static_cast<void>(loader.next(stream_)), Stop) << what;
    }
    if (training) training->end();
    held.reset();
    const auto batch = loader.next(stream_);
    ASSERT_TRUE(batch) << what;
    EXPECT_EQ(batch->step(), what);
    EXPECT_GE(calls, 2);
  }
}

/// Training that never ends: an error that says where, whatever is waited for, and nothing is lost.
TEST_F(DeviceLoaderTest, AConsumersStreamThatDoesNotEndIsAnError) {
  for (const PinMemory pin : {PinMemory::require, PinMemory::prefer, PinMemory::off}) {
    for (const auto& [max_held, echo_buffer_batches, echo] :
         {std::array<std::int64_t, 3>{1, 1, 1}, {2, 1, 1}, {2, 3, 2}, {8, 1, 1}, {3, 12, 1}}) {
      SCOPED_TRACE(std::to_string(max_held) + " " + std::to_string(echo_buffer_batches) + " " +
                   std::to_string(echo) + ", pin " + std::to_string(static_cast<int>(pin)));
      gpu_->set_capacity(kLargeGpu);
      // Refused for images, not for what says which rows: another thread waits for the device.
      if (pin == PinMemory::prefer) gpu_->fail_once("pin", gpu_->calls("pin") + 1);
      const DeviceOptions options{.normalize = augmented(),
                                  .echo_buffer_batches = echo_buffer_batches,
                                  .echo = echo,
                                  .max_held = max_held,
                                  .device_timeout_seconds = 0.05,
                                  .pin_memory = pin,
                                  .resident = DeviceResident::off};
      std::vector<Delivered> wanted;
      for (const std::int64_t epoch : {0, 1, 2}) {
        for (const Delivered& batch : expected(options, epoch)) wanted.push_back(batch);
      }
      // Few, so that the thread that feeds the device waits, too.
      LoaderOptions host = loader_options();
      host.memory.max_held = 2;
      DeviceLoader loader = device_loader(options, host);
      loader.start_epoch(0);
      std::vector<std::vector<std::byte>> seen(wanted.size());
      std::size_t next = 0;
      const auto take = [&] {
        auto batch = loader.next(stream_);
        if (!batch) {
          loader.start_epoch(wanted[next].epoch);
          batch = loader.next(stream_);
        }
        ASSERT_TRUE(batch);
        ASSERT_EQ(batch->step(), wanted[next].step);
        seen[next].resize(wanted[next].images.size());
        gpu_->run_on(stream_, [&bytes = seen[next], data = batch->images().data()] {
          std::memcpy(bytes.data(), data, bytes.size());
        });
        ++next;
      };
      // Threads of a busy machine may come late, and then next() is to be called again.
      const auto take_in_the_end = [&] {
        for (int tries = 0;; ++tries) {
          try {
            return take();
          } catch (const Error& error) {
            if (error.code() != ErrorCode::timed_out || tries == 200) throw;
          }
        }
      };
      take_in_the_end();
      gpu_->synchronize(stream_);  // batch 0 is done with
      Blocker training(*gpu_, stream_);
      // Who is late delivers in the end; what waits for training gives the same error each time.
      std::string message;
      const auto names_training = [&] {
        return message.find("batch 1 of epoch 0") != std::string::npos;
      };
      int in_a_row = 0;
      for (int tries = 0; in_a_row < 2 && tries < 200 && next < wanted.size(); ++tries) {
        try {
          take();
          in_a_row = 0;
        } catch (const Error& error) {
          message = error.what();
          ASSERT_EQ(error.code(), ErrorCode::timed_out) << message;
          in_a_row = names_training() ? in_a_row + 1 : 0;
        }
        if (HasFatalFailure()) return;
      }
      ASSERT_EQ(in_a_row, 2) << next << " batches were delivered; " << message;
      for (const std::string part : {"0.05 s", "device_timeout_seconds"}) {
        EXPECT_NE(message.find(part), std::string::npos) << part << " in: " << message;
      }
      training.end();
      gpu_->synchronize(stream_);
      while (next < wanted.size() && !HasFatalFailure()) take_in_the_end();
      gpu_->synchronize(stream_);
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        ASSERT_EQ(seen[i], wanted[i].images) << i;
      }
    }
  }
}

TEST_F(DeviceLoaderTest, TheConsumersStreamIsIdleWhileACopyKeepsTheHostWaiting) {
  gpu_->set_capacity(kLargeGpu);
  DeviceLoader loader = device_loader({.normalize = plain(), .pin_memory = PinMemory::off});
  ASSERT_TRUE(loader.stats().resident);
  gpu_->slow_down(std::chrono::milliseconds(8), {});  // What says which rows is copied.
  // The last two of an epoch are not counted yet, and those to which a thread of a busy machine
  // came late are not at all.
  double stalled = 0;
  for (std::int64_t epoch = 0; epoch < 8 && stalled < 10 * 0.004; ++epoch) {
    const double before = loader.stats().device_stall_seconds;
    loader.start_epoch(epoch);
    while (loader.next(stream_)) {
    }
    stalled = std::max(stalled, loader.stats().device_stall_seconds - before);
  }
  EXPECT_GE(stalled, 10 * 0.004);
  gpu_->slow_down({}, {});
}

}  // namespace
}  // namespace chunkio::cuda
