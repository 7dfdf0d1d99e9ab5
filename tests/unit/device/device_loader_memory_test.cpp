// Memory of a DeviceLoader: what it takes, what is refused, and what is locked; and options that
// cannot be.
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <chunkio/dlpack.hpp>

#include "support/device_loader_fixture.hpp"

namespace chunkio::cuda {
namespace {

using test::Delivered;
using test::DeviceLoaderTest;
using test::expect_error;

TEST_F(DeviceLoaderTest, ItIsResidentIfItFits) {
  gpu_->set_capacity(kDatasetBytes * 4);
  EXPECT_TRUE(device_loader({.normalize = plain()}).stats().resident);
  EXPECT_FALSE(
      device_loader({.normalize = plain(), .resident = DeviceResident::off}).stats().resident);
  gpu_->set_capacity(kSmallGpu);
  EXPECT_FALSE(device_loader({.normalize = plain()}).stats().resident);
  const DeviceOptions required{.normalize = plain(), .resident = DeviceResident::require};
  expect_error(ErrorCode::out_of_resources,
               {"train.h5", std::to_string(kDatasetBytes), "resident_share", "automatic"},
               [&] { const DeviceLoader loader = device_loader(required); });
  DeviceOptions more = required;
  more.resident_share = 1;
  EXPECT_TRUE(device_loader(more).stats().resident);
}

TEST_F(DeviceLoaderTest, FieldsCrossToOtherFrameworksAndCountAsMemory) {
  gpu_->set_capacity(kLargeGpu);
  LoaderOptions host = loader_options();
  host.fields = {"weights"};
  DeviceOptions options{.device = 3, .normalize = plain(), .resident = DeviceResident::off};
  {
    DeviceLoader loader = device_loader(options, host);
    loader.start_epoch(0);
    const auto batch = loader.next(stream_);
    ASSERT_TRUE(batch);
    const Tensor weights = (*batch)["weights"];
    EXPECT_EQ(weights.dtype(), DType::float32);
    EXPECT_EQ(weights.shape(), Shape({4, 2}));
    EXPECT_EQ(weights.device(), (Device{DeviceType::cuda, 3}));
    EXPECT_FALSE(weights.read_only());
    EXPECT_EQ(to_dlpack(*batch, weights)->dl_tensor.data, weights.data());
    const Tensor elsewhere(&host, weights.dtype(), weights.shape(), weights.device());
    expect_error(ErrorCode::invalid_argument, {"not of this batch"},
                 [&] { static_cast<void>(to_dlpack(*batch, elsewhere)); });
  }
  // Two output batches and two batches of the loader.
  const std::int64_t needed = 2 * (kOutputBytes + 4 * 8) + echo_buffer_bytes(4) + 2 * 4 * 8;
  gpu_->set_capacity(needed - 1);
  expect_error(ErrorCode::out_of_resources, {std::to_string(needed) + " bytes", "leave out fields"},
               [&] { const DeviceLoader loader = device_loader(options, host); });
  gpu_->set_capacity(needed);
  const DeviceLoader loader = device_loader(options, host);
  EXPECT_EQ(gpu_->memory().free_bytes, 0);
}

TEST_F(DeviceLoaderTest, ResizingTakesMemoryOnceForAllOutputBatches) {
  gpu_->set_capacity(kLargeGpu);
  NormalizeOptions normalize = plain();
  normalize.random_resized_crop = ResizedCropRanges{};
  normalize.seed = 11;
  DeviceOptions options{.normalize = normalize, .resident = DeviceResident::off};
  // What each of four samples is resized to, what lies between the passes, and two tables of 6 and
  // 5 pixels with up to four weights, first pixel and count.
  constexpr std::int64_t kResized = 4 * 6 * 5 * 3 + 8;  // whole words
  constexpr std::int64_t kScratch = 2 * kResized + 4 * (6 + 5) * (4 + 2) * 4;
  // A box is told of each sample.
  const std::int64_t needed = 2 * (kOutputBytes + 4 * 16) + echo_buffer_bytes(4) + kScratch;
  gpu_->set_capacity(needed - 1);
  expect_error(ErrorCode::out_of_resources, {std::to_string(needed) + " bytes", "max_held"},
               [&] { const DeviceLoader loader = device_loader(options); });
  gpu_->set_capacity(needed);
  DeviceLoader loader = device_loader(options);
  EXPECT_EQ(gpu_->memory().free_bytes, 0);
  EXPECT_EQ(loader.device_bytes(), needed);
  EXPECT_EQ(epoch_of(loader, 0), expected(options, 0));
}

TEST_F(DeviceLoaderTest, WhatDoesNotFitAfterAllIsFedByTheHost) {
  for (const DeviceResident resident : {DeviceResident::automatic, DeviceResident::require}) {
    const DeviceOptions options{.normalize = plain(), .max_held = 1, .resident = resident};
    gpu_->set_capacity(kLargeGpu);
    // Images, labels and tasks of the one output batch come first.
    gpu_->fail_once("allocate", gpu_->calls("allocate") + 4);
    if (resident == DeviceResident::require) {
      expect_error(ErrorCode::out_of_resources,
                   {"fails at allocate", std::to_string(kDatasetBytes), "resident to automatic"},
                   [&] { const DeviceLoader loader = device_loader(options); });
      continue;
    }
    DeviceLoader loader = device_loader(options);
    EXPECT_FALSE(loader.stats().resident);
    EXPECT_EQ(epoch_of(loader, 0), expected(options, 0));
  }
}

TEST_F(DeviceLoaderTest, AddressesAndAllocationsStayTheSame) {
  for (const DeviceResident resident : {DeviceResident::off, DeviceResident::require}) {
    for (const std::int64_t echo : {1, 2}) {
      gpu_->set_capacity(kLargeGpu);
      DeviceLoader loader = device_loader({.normalize = plain(),
                                           .echo_buffer_batches = echo,
                                           .echo = echo,
                                           .max_held = 2,
                                           .resident = resident});
      const auto taken = [&] {
        int calls = 0;
        for (const char* member :
             {"pin", "allocate", "allocate_pinned", "create_event", "create_stream"}) {
          calls += gpu_->calls(member);
        }
        return calls;
      };
      const int before = taken();
      std::set<const void*> addresses;
      for (const std::int64_t epoch : {0, 1, 2}) {
        loader.start_epoch(epoch);
        while (const auto batch = loader.next(stream_)) addresses.insert(batch->images().data());
      }
      EXPECT_EQ(addresses.size(), 2U);
      EXPECT_EQ(taken(), before);
      EXPECT_EQ(loader.stats().batches, 36 * echo);
      EXPECT_EQ(loader.stats().images, 3 * 47 * echo);
      EXPECT_TRUE(loader.stats().pinned);
    }
  }
}

/// Or one that is copied would wait for the kernel of one that is not.
TEST_F(DeviceLoaderTest, WhatSaysWhichRowsIsFetchedForAllBatchesOrForNone) {
  const DeviceOptions options{.normalize = augmented(),
                              .max_held = 2,
                              .pin_memory = PinMemory::prefer,
                              .resident = DeviceResident::off};
  gpu_->fail_from("allocate_pinned", gpu_->calls("allocate_pinned") + 2);
  const int fetched = gpu_->calls("fetch");
  DeviceLoader loader = device_loader(options);
  EXPECT_EQ(epoch_of(loader, 0), expected(options, 0));
  EXPECT_EQ(gpu_->calls("fetch"), fetched);
}

TEST_F(DeviceLoaderTest, PageLockingThatIsRefusedIsAnErrorOrNot) {
  // The batches of the loader, and what says which row is where.
  for (const std::string member : {"pin", "allocate_pinned"}) {
    for (const bool resident : {false, true}) {
      for (const int call : {1, 2}) {
        SCOPED_TRACE(member + " " + std::to_string(resident) + " " + std::to_string(call));
        end_gpu();
        start_gpu();
        gpu_->set_capacity(kLargeGpu);
        gpu_->fail_from(member, call);
        DeviceOptions options{.normalize = augmented(),
                              .echo_buffer_batches = 3,
                              .echo = 2,
                              .resident = resident ? DeviceResident::require : DeviceResident::off};
        expect_error(ErrorCode::out_of_resources, {member, "ulimit -l", "pin_memory to prefer"},
                     [&] { const DeviceLoader loader = device_loader(options); });
        gpu_->fail_from(member, gpu_->calls(member) + call);
        options.pin_memory = PinMemory::prefer;
        DeviceLoader loader = device_loader(options);
        EXPECT_EQ(loader.stats().pinned, member != "pin");
        for (const std::int64_t epoch : {0, 1}) {
          EXPECT_EQ(epoch_of(loader, epoch), expected(options, epoch));
        }
      }
    }
  }
}

TEST_F(DeviceLoaderTest, WithoutPageLockingNothingIsLocked) {
  for (const DeviceResident resident : {DeviceResident::off, DeviceResident::require}) {
    gpu_->set_capacity(kLargeGpu);
    const DeviceOptions options{.normalize = augmented(),
                                .echo_buffer_batches = 3,
                                .echo = 2,
                                .pin_memory = PinMemory::off,
                                .resident = resident};
    DeviceLoader loader = device_loader(options);
    EXPECT_FALSE(loader.stats().pinned);
    for (const std::int64_t epoch : {0, 1}) {
      EXPECT_EQ(epoch_of(loader, epoch), expected(options, epoch));
    }
  }
  EXPECT_EQ(gpu_->calls("pin") + gpu_->calls("allocate_pinned"), 0);
}

TEST_F(DeviceLoaderTest, BuffersThatDoNotFitAreRefusedBeforeAnythingIsAllocated) {
  const auto refused = [&](const std::vector<std::string>& parts, const DeviceOptions& options,
                           const LoaderOptions& host = loader_options()) {
    expect_error(ErrorCode::out_of_resources, parts,
                 [&] { const DeviceLoader loader = device_loader(options, host); });
    EXPECT_EQ(gpu_->calls("allocate") + gpu_->calls("allocate_pinned"), 0);
  };
  const auto text = [](std::int64_t bytes) { return std::to_string(bytes); };

  const std::int64_t outputs = 2 * kOutputBytes;
  const std::int64_t inputs = echo_buffer_bytes(5 * 4);
  DeviceOptions options{
      .normalize = plain(), .echo_buffer_batches = 5, .resident = DeviceResident::off};
  gpu_->set_capacity(outputs + inputs - 1);
  refused({text(outputs + inputs) + " bytes of device memory are needed",
           text(outputs + inputs - 1) + " were free", text(outputs) + " for output batches",
           text(inputs) + " for two echo buffers", "echo_buffer_batches = 5", "max_held = 2",
           "batch_size = 4", "lower echo_buffer_batches"},
          options);

  options = {.normalize = plain(), .resident = DeviceResident::require, .resident_share = 1};
  gpu_->set_capacity(outputs + kDatasetBytes - 1);
  refused({text(outputs + kDatasetBytes) + " bytes", text(kDatasetBytes) + " for the resident",
           "lower max_held or batch_size", "resident to automatic"},
          options);

  options = {.normalize = plain(), .max_held = 1024};
  options.normalize.padding = 1 << 20;
  options.normalize.crop_height = 1 << 20;
  options.normalize.crop_width = 1 << 13;
  refused({text((std::int64_t{4} * 1024) * ((std::int64_t{12} << 33) + 24)) + " for output batches",
           "max_held = 1024", "lower echo_buffer_batches, max_held or batch_size"},
          options);
  refused({"9223372036854775807 for output batches"}, options, {.batch_size = 1 << 18});
}

TEST_F(DeviceLoaderTest, BuffersThatJustFitDeliver) {
  DeviceOptions options{.normalize = augmented(), .echo_buffer_batches = 5, .resident_share = 1};
  for (const DeviceResident resident : {DeviceResident::off, DeviceResident::require}) {
    options.resident = resident;
    gpu_->set_capacity(2 * kOutputBytes + (resident == DeviceResident::off
                                               ? echo_buffer_bytes(5 * 4)
                                               : kDatasetBytes));
    DeviceLoader loader = device_loader(options);
    EXPECT_EQ(gpu_->memory().free_bytes, 0);
    EXPECT_EQ(loader.device_bytes(), gpu_->allocated_bytes());
    EXPECT_EQ(epoch_of(loader, 0), expected(options, 0));
  }
  // The dataset would fit, but not beside the output batches.
  options.echo_buffer_batches = 1;
  options.resident = DeviceResident::automatic;
  gpu_->set_capacity(2 * kOutputBytes + kDatasetBytes - 1);
  DeviceLoader loader = device_loader(options);
  EXPECT_FALSE(loader.stats().resident);
  EXPECT_EQ(epoch_of(loader, 0), expected(options, 0));
}

TEST_F(DeviceLoaderTest, AEchoBufferTakesNoMoreThanAnEpochHas) {
  for (const std::int64_t echo_buffer_batches :
       {std::int64_t{500'000'000}, std::numeric_limits<std::int64_t>::max()}) {
    for (const DeviceResident resident : {DeviceResident::off, DeviceResident::require}) {
      gpu_->set_capacity(kLargeGpu);
      const std::int64_t echo =
          echo_buffer_batches == 500'000'000 ? 2 : 1;  // all steps can be counted
      const DeviceOptions options{.normalize = augmented(),
                                  .echo_buffer_batches = echo_buffer_batches,
                                  .echo = echo,
                                  .resident = resident};
      DeviceLoader loader = device_loader(options);
      EXPECT_EQ(loader.device_bytes(),
                2 * kOutputBytes +
                    (resident == DeviceResident::off ? echo_buffer_bytes(12 * 4) : kDatasetBytes));
      const std::vector<Delivered> wanted =
          expected({.normalize = augmented(), .echo_buffer_batches = 12, .echo = echo}, 1);
      EXPECT_EQ(epoch_of(loader, 1), wanted);
      loader.start_epoch(1);
      for (int i = 0; i < 10; ++i) ASSERT_TRUE(loader.next(stream_));
      DeviceLoader second = device_loader(options);
      second.restore(loader.state());
      EXPECT_EQ(drain(second), std::vector<Delivered>(wanted.begin() + 10, wanted.end()));
    }
  }
}

TEST_F(DeviceLoaderTest, DeviceMemoryThatIsRefusedAllTheSameNamesTheWayOut) {
  const DeviceOptions options{.normalize = plain(), .resident = DeviceResident::off};
  int allocations = 0;
  {
    const DeviceLoader loader = device_loader(options);
    allocations = gpu_->calls("allocate");
  }
  EXPECT_EQ(allocations, 2 * 3 + 2 * 2);
  for (int i = 1; i <= allocations; ++i) {
    gpu_->fail_once("allocate", gpu_->calls("allocate") + i);
    expect_error(ErrorCode::out_of_resources,
                 {"fails at allocate", std::to_string(2 * kOutputBytes), std::to_string(kSmallGpu),
                  "lower echo_buffer_batches, max_held or batch_size"},
                 [&] { const DeviceLoader loader = device_loader(options); });
  }
  // Beside a dataset that is kept because it fits.
  gpu_->set_capacity(kLargeGpu);
  gpu_->fail_once("allocate", gpu_->calls("allocate") + 1);
  expect_error(ErrorCode::out_of_resources, {"fails at allocate", "set resident to off"},
               [&] { const DeviceLoader loader = device_loader({.normalize = plain()}); });
}

TEST_F(DeviceLoaderTest, WrongOptionsAreRefused) {
  const auto refused = [&](const std::vector<std::string>& parts, const DeviceOptions& options) {
    expect_error(ErrorCode::invalid_argument, parts,
                 [&] { const DeviceLoader loader = device_loader(options); });
  };
  refused({"echo_buffer_batches"}, {.echo_buffer_batches = 0});
  refused({"echo"}, {.echo = 0});
  refused({"lower echo"}, {.echo = std::int64_t{1} << 61});
  refused({"max_held"}, {.max_held = 0});
  refused({"release_timeout_seconds", "1e6"}, {.release_timeout_seconds = -1});
  refused({"device_timeout_seconds", "1e6"}, {.device_timeout_seconds = 2e6});
  refused({"device_timeout_seconds"}, {.device_timeout_seconds = std::nan("")});
  refused({"resident_share"}, {.resident_share = 1.5});
  refused({"label_dtype"}, {.label_dtype = DType::uint8});
  refused({"mean has 2"}, {.normalize = {.mean = {0, 0}, .std = {1, 1}}});
  refused({"crop_width"}, {.normalize = {.mean = {0}, .std = {1}, .crop_width = 99}});
  refused({"random_crop", "padding", "crop_height"},
          {.normalize = {.mean = {0}, .std = {1}, .random_crop = true}});
  refused({"padding has no effect", "random_crop"},
          {.normalize = {.mean = {0}, .std = {1}, .padding = 4}});
  expect_error(ErrorCode::invalid_argument, {"2^31", "lower echo_buffer_batches"}, [&] {
    const DeviceLoader loader =
        device_loader({.normalize = plain()}, {.batch_size = std::int64_t{1} << 31});
  });
}

}  // namespace
}  // namespace chunkio::cuda
