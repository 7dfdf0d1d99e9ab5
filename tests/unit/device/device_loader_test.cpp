// What a DeviceLoader delivers.
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <chunkio/dlpack.hpp>

#include "support/damage.hpp"
#include "support/device_loader_fixture.hpp"
#include "support/h5_files.hpp"

namespace chunkio::cuda {
namespace {

using test::Delivered;
using test::DeviceLoaderTest;
using test::expect_error;

TEST_F(DeviceLoaderTest, EveryFormOfInputAndOutputIsTheNormalizers) {
  struct Case {
    std::string name;
    test::PackedFile file = {.num_samples = 47, .height = 6, .width = 5, .chunk_samples = 6};
    NormalizeOptions normalize = augmented();
    Shape shape = {4, 3, 6, 5};
    std::vector<std::int64_t> strides = {90, 30, 5, 1};
  };
  std::vector<Case> cases;
  for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16}) {
    const std::string type = std::string(to_string(dtype));
    cases.push_back({.name = type + ", channels first"});
    cases.push_back(
        {.name = type + ", channels last", .shape = {4, 6, 5, 3}, .strides = {90, 15, 3, 1}});
    cases.back().normalize.layout = Layout::nhwc;
    cases.push_back({.name = type + ", cropped", .shape = {4, 3, 4, 7}, .strides = {84, 28, 7, 1}});
    cases.push_back({.name = type + ", cropped in the middle, channels last",
                     .shape = {4, 4, 7, 3},
                     .strides = {84, 21, 3, 1}});
    cases.back().normalize.layout = Layout::nhwc;
    cases.back().normalize.random_crop = false;
    for (std::size_t i = cases.size() - 2; i < cases.size(); ++i) {
      cases[i].normalize.crop_height = 4;
      cases[i].normalize.crop_width = 7;
    }
    cases.push_back(cases[cases.size() - 2]);
    cases.back().name = type + ", resized";
    cases.push_back(cases[cases.size() - 2]);
    cases.back().name = type + ", resized, channels last";
    for (std::size_t i = cases.size() - 2; i < cases.size(); ++i) {
      cases[i].normalize.random_crop = false;
      cases[i].normalize.padding = 0;
      cases[i].normalize.random_resized_crop = ResizedCropRanges{};
    }
    for (std::size_t i = cases.size() - 6; i < cases.size(); ++i) cases[i].normalize.dtype = dtype;
  }
  for (std::size_t i = 0, n = cases.size(); i < n; ++i) {
    cases.push_back(cases[i]);
    cases.back().name += ", of an NCHW file without labels";
    cases.back().file.layout = Layout::nchw;
    cases.back().file.labels = false;
  }
  for (const Case& tried : cases) {
    SCOPED_TRACE(tried.name);
    path_ = folder_.file("form.h5");
    std::filesystem::remove(path_);
    test::write_packed(path_, tried.file);
    for (const DeviceResident resident : {DeviceResident::off, DeviceResident::require}) {
      gpu_->set_capacity(kLargeGpu);
      const DeviceOptions options{
          .normalize = tried.normalize,
          .label_dtype = tried.normalize.dtype == DType::float32 ? DType::int64 : DType::float32,
          .echo_buffer_batches = 3,
          .echo = 2,
          .resident = resident};
      DeviceLoader loader = device_loader(options);
      EXPECT_EQ(epoch_of(loader, 1), expected(options, 1));
      loader.start_epoch(1);
      const auto batch = loader.next(stream_);
      ASSERT_TRUE(batch);
      EXPECT_EQ(batch->images().dtype(), tried.normalize.dtype);
      EXPECT_EQ(batch->images().shape(), tried.shape);
      const dlpack::ManagedTensor images = to_dlpack(*batch, batch->images());
      EXPECT_EQ(std::vector<std::int64_t>(images->dl_tensor.strides,
                                          images->dl_tensor.strides + images->dl_tensor.ndim),
                tried.strides);
      EXPECT_EQ(batch->labels().data() != nullptr, tried.file.labels);
      EXPECT_EQ(batch->labels().shape(), tried.file.labels ? Shape{4} : Shape{});
    }
  }
}

TEST_F(DeviceLoaderTest, MeanAndStdAreThoseOfTheFileUnlessGiven) {
  path_ = folder_.file("statistics.h5");
  const DatasetSpec spec = test::small_spec(47);
  DatasetWriter writer(path_, spec);
  test::write_pattern(writer, spec);
  writer.set_statistics({.channels = {.mean = {0.4, 0.5, 0.6}, .std = {0.25, 0.2, 0.3}},
                         .class_counts = {16, 16, 15}});
  writer.close();
  DeviceLoader of_file = device_loader({});
  const std::vector<Delivered> batches = epoch_of(of_file, 0);
  EXPECT_EQ(batches, expected({}, 0));
  const DeviceOptions given{.normalize = {.mean = {0.4, 0.5, 0.6}, .std = {0.25, 0.2, 0.3}}};
  EXPECT_EQ(batches, expected(given, 0));
  EXPECT_NE(batches, expected({.normalize = plain()}, 0));
}

TEST_F(DeviceLoaderTest, EchoDealsTheRowsOfAEchoBufferAnew) {
  for (const std::int64_t echo_buffer_batches : {1, 3, 12}) {
    const DeviceOptions options{
        .normalize = augmented(), .echo_buffer_batches = echo_buffer_batches, .echo = 3};
    DeviceLoader loader = device_loader(options);
    EXPECT_EQ(loader.num_steps(), 36);
    const std::vector<Delivered> batches = epoch_of(loader, 1);
    EXPECT_EQ(batches, expected(options, 1));
    // Whatever the reference says: each sample as often as the echo, and batches of later passes
    // differ.
    std::map<std::int64_t, int> uses;
    for (const Delivered& batch : batches) {
      for (const std::int64_t id : batch.ids) ++uses[id];
    }
    EXPECT_EQ(uses.size(), 47U);
    for (const auto& [id, count] : uses) EXPECT_EQ(count, 3) << id;
    const std::size_t first = static_cast<std::size_t>(echo_buffer_batches);
    EXPECT_NE(batches[0].images, batches[first].images) << "the second pass";
    EXPECT_EQ(batches[first].echo_pass, 1);
  }
}

TEST_F(DeviceLoaderTest, RanksDealInTheirOwnOrderAndSubsetsOfRowsAreDelivered) {
  const RowSelection some({{3, 20}, {22, 23}, {30, 47}});
  gpu_->set_capacity(kLargeGpu);
  for (const DeviceResident resident : {DeviceResident::off, DeviceResident::require}) {
    for (const auto& rows : {std::optional<RowSelection>(), std::optional(some)}) {
      LoaderOptions host = loader_options();
      host.ranks.world_size = 2;
      host.rows = rows;
      const DeviceOptions options{
          .normalize = augmented(), .echo_buffer_batches = 3, .echo = 3, .resident = resident};
      for (host.ranks.rank = 0; host.ranks.rank < 2; ++host.ranks.rank) {
        DeviceLoader loader = device_loader(options, host);
        for (const std::int64_t epoch : {0, 1}) {
          EXPECT_EQ(epoch_of(loader, epoch), expected(options, epoch, host)) << host.ranks.rank;
        }
      }
    }
  }
}

TEST_F(DeviceLoaderTest, AResidentDatasetIsReadOnceAndDeliversTheSame) {
  gpu_->set_capacity(kLargeGpu);
  for (const auto& [echo_buffer_batches, echo] :
       {std::pair<std::int64_t, std::int64_t>{1, 1}, {3, 2}}) {
    const DeviceOptions options{
        .normalize = augmented(), .echo_buffer_batches = echo_buffer_batches, .echo = echo};
    DeviceLoader loader = device_loader(options);
    EXPECT_TRUE(loader.stats().resident);
    EXPECT_TRUE(loader.stats().pinned);
    const int copied = gpu_->calls("copy_to_device");
    const int fetched = gpu_->calls("fetch");
    int batches = 0;
    for (const std::int64_t epoch : {0, 1, 5}) {
      const std::vector<Delivered> delivered = epoch_of(loader, epoch);
      EXPECT_EQ(delivered, expected(options, epoch)) << echo_buffer_batches << " " << epoch;
      batches += static_cast<int>(delivered.size());
    }
    EXPECT_EQ(gpu_->calls("fetch") - fetched, batches) << "what says which rows";
    EXPECT_EQ(gpu_->calls("copy_to_device"), copied);
    EXPECT_EQ(loader.stats().bytes_uploaded, 47 * (6 * 5 * 3 + 8));
    EXPECT_EQ(loader.stats().loader.bytes_read, 47 * 6 * 5 * 3);
  }
}

TEST_F(DeviceLoaderTest, FieldsComeAlongAsTheyAre) {
  gpu_->set_capacity(kLargeGpu);
  LoaderOptions host = loader_options();
  host.fields = {"weights"};
  for (const DeviceResident resident : {DeviceResident::off, DeviceResident::require}) {
    for (const std::int64_t echo_buffer_batches : {1, 3}) {
      for (const std::int64_t echo : {1, 3}) {
        SCOPED_TRACE(std::to_string(echo_buffer_batches) + " " + std::to_string(echo));
        const DeviceOptions options{.normalize = augmented(),
                                    .echo_buffer_batches = echo_buffer_batches,
                                    .echo = echo,
                                    .resident = resident};
        DeviceLoader loader = device_loader(options, host);
        EXPECT_EQ(loader.device_bytes(), gpu_->allocated_bytes());
        const std::vector<Delivered> wanted = expected(options, 1, host);
        loader.start_epoch(1);
        EXPECT_EQ(drain(loader, true), wanted);
        loader.start_epoch(1);
        for (int i = 0; i < 5; ++i) ASSERT_TRUE(loader.next(stream_));
        DeviceLoader second = device_loader(options, host);
        second.restore(loader.state());
        EXPECT_EQ(drain(second, true), std::vector<Delivered>(wanted.begin() + 5, wanted.end()));
        const std::int64_t rows = resident == DeviceResident::require ? 47 : 0;
        if (rows > 0) {
          EXPECT_EQ(loader.stats().bytes_uploaded, rows * (6 * 5 * 3 + 8 + 8));
        }
      }
    }
  }
}

TEST_F(DeviceLoaderTest, BatchesCrossToOtherFrameworks) {
  DeviceLoader loader = device_loader(
      {.device = 3, .normalize = augmented(), .max_held = 1, .release_timeout_seconds = 0});
  loader.start_epoch(0);
  std::optional<DeviceBatch> batch = loader.next(stream_);
  ASSERT_TRUE(batch);
  dlpack::ManagedTensor images = to_dlpack(*batch, batch->images());
  EXPECT_EQ(images->dl_tensor.data, batch->images().data());
  EXPECT_EQ(images->flags, 0U) << "a batch on the device may be written";
  EXPECT_EQ(batch->images().mutable_data(), batch->images().data());
  EXPECT_EQ(images->dl_tensor.device.device_type, dlpack::DLDeviceType::cuda);
  EXPECT_EQ(images->dl_tensor.device.device_id, 3);
  EXPECT_EQ(to_dlpack(*batch, batch->labels())->dl_tensor.device.device_id, 3);
  EXPECT_EQ(images->dl_tensor.ndim, 4);
  EXPECT_EQ(images->dl_tensor.shape[1], 3);
  EXPECT_EQ(images->dl_tensor.dtype.code, dlpack::DLDataTypeCode::floating_point);
  EXPECT_EQ(to_dlpack(*batch, batch->labels())->dl_tensor.dtype.bits, 64);
  dlpack::LegacyManagedTensor legacy = to_dlpack_legacy(*batch, batch->images());
  EXPECT_EQ(legacy->dl_tensor.data, batch->images().data());
  EXPECT_EQ(legacy->dl_tensor.device.device_type, dlpack::DLDeviceType::cuda);
  EXPECT_EQ(legacy->dl_tensor.dtype, images->dl_tensor.dtype);
  EXPECT_EQ(std::vector(legacy->dl_tensor.strides, legacy->dl_tensor.strides + 4),
            std::vector(images->dl_tensor.strides, images->dl_tensor.strides + 4));

  const Tensor ours = batch->images();
  const Tensor elsewhere(&loader, ours.dtype(), ours.shape(), ours.device());
  const Tensor longer(ours.data(), ours.dtype(),
                      ours.shape().without_first_axis().with_first_axis(8), ours.device());
  for (const Tensor& other : {elsewhere, longer}) {
    expect_error(ErrorCode::invalid_argument, {"not of this batch"},
                 [&] { static_cast<void>(to_dlpack(*batch, other)); });
    expect_error(ErrorCode::invalid_argument, {"not of this batch"},
                 [&] { static_cast<void>(to_dlpack_legacy(*batch, other)); });
  }
  batch.reset();
  images.reset();
  // The last tensor still holds it.
  expect_error(ErrorCode::timed_out, {"held"}, [&] { static_cast<void>(loader.next(stream_)); });
  legacy.reset();
  EXPECT_TRUE(loader.next(stream_));
}

TEST_F(DeviceLoaderTest, SkippedRowsAreLeftOutAndCounted) {
  gpu_->set_capacity(kLargeGpu);
  test::damage_image(path_, 12);
  LoaderOptions host = loader_options();
  host.io.verify = Verify::always;
  host.io.on_error = OnError::skip;
  host.io.num_epochs = 1;
  for (const DeviceResident resident : {DeviceResident::off, DeviceResident::require}) {
    DeviceLoader loader =
        device_loader({.normalize = plain(), .resident = resident, .resident_share = 1}, host);
    std::int64_t images = 0;
    for (const Delivered& batch : epoch_of(loader, 0)) images += std::ssize(batch.ids);
    EXPECT_EQ(images, 46);
    EXPECT_EQ(loader.stats().loader.skipped_images, 1);
    ASSERT_EQ(loader.skipped().size(), 1U);
    EXPECT_EQ(loader.skipped()[0].first_row, 12);
  }
}

TEST_F(DeviceLoaderTest, AttributesBecomeNumbers) {
  DatasetSpec spec = test::small_spec(9);
  spec.class_names.clear();
  spec.fields = {test::field("labels", std::vector<std::uint8_t>(27, 1), Shape{3})};
  spec.fields[0].values[4] = std::byte{0};
  path_ = folder_.file("attributes.h5");
  DatasetWriter writer(path_, spec);
  test::write_pattern(writer, spec);
  writer.close();
  DeviceLoader loader = device_loader({.normalize = plain(), .label_dtype = DType::float32},
                                      {.batch_size = 9, .order = {.mode = OrderMode::sequential}});
  loader.start_epoch(0);
  const auto batch = loader.next(stream_);
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->labels().shape(), (Shape{9, 3}));
  std::vector<float> wanted(27, 1.0F);
  wanted[4] = 0.0F;
  EXPECT_EQ(read(*batch).labels, test::as_bytes(wanted));
}

/// The first failure of any call, at every call: an error, nothing leaks, nothing hangs.
TEST_F(DeviceLoaderTest, AnyCallMayFail) {
  const std::vector<std::string> members{"require_supported",
                                         "pin",
                                         "allocate",
                                         "allocate_pinned",
                                         "create_stream",
                                         "create_event",
                                         "record",
                                         "wait",
                                         "is_done",
                                         "synchronize",
                                         "seconds_between",
                                         "copy_to_device",
                                         "fetch",
                                         "clear",
                                         "normalize"};
  for (const std::string& member : members) {
    int failures = 0;
    for (int n = 1; n < 120; ++n) {
      SCOPED_TRACE(member + " " + std::to_string(n));
      end_gpu();
      start_gpu();
      gpu_->set_capacity(n % 2 == 0 ? kLargeGpu : kSmallGpu);
      const int before = gpu_->calls(member);
      gpu_->fail_from(member, before + n / 2 + 1);
      std::optional<DeviceLoader> loader;
      try {
        loader = device_loader({.normalize = plain(), .echo_buffer_batches = 3, .echo = 2});
        loader->start_epoch(0);
        while (loader->next(stream_)) {
        }
      } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find(member), std::string::npos) << error.what();
        ++failures;
        // A failure that goes away again was one all the same: what came after it is not right.
        gpu_->fail_from(member, 1 << 30);
        if (loader) {
          try {
            for (int i = 0; i < 100; ++i) static_cast<void>(loader->next(stream_));
            ADD_FAILURE() << "the error is gone: " << error.what();
          } catch (const Error& again) {
            const std::string told = again.what();
            EXPECT_TRUE(told == error.what() || told.find("no epoch was started") == 0) << told;
          }
        }
      }
      loader.reset();
      gpu_->fail_from(member, 1 << 30);
      gpu_->synchronize(stream_);
      ASSERT_FALSE(HasFailure());
    }
    EXPECT_GT(failures, 0) << member;
  }
}

TEST_F(DeviceLoaderTest, WhatTheLoaderMeetsIsThrownEveryTime) {
  DeviceLoader loader = device_loader({.normalize = plain(), .echo_buffer_batches = 2});
  loader.start_epoch(0);
  ASSERT_TRUE(loader.next(stream_));
  test::write_packed(folder_.file("other.h5"), {.num_samples = 50, .height = 6, .width = 5});
  std::filesystem::copy_file(folder_.file("other.h5"), path_,
                             std::filesystem::copy_options::overwrite_existing);
  loader.start_epoch(9);
  const auto drain = [&] {
    while (loader.next(stream_)) {
    }
  };
  std::string first;
  try {
    drain();
    ADD_FAILURE() << "the file was changed";
  } catch (const Error& error) {
    first = error.what();
    EXPECT_NE(first.find("train.h5"), std::string::npos) << first;
    expect_error(error.code(), {first}, drain);
  }
}

TEST_F(DeviceLoaderTest, WhereThereIsNoGpuItSaysSo) {
  try {
    static_cast<void>(device::open_gpu(0));
    GTEST_SKIP() << "there is one";
  } catch (const Error& error) {
    EXPECT_TRUE(error.code() == ErrorCode::cuda_failed || error.code() == ErrorCode::unsupported);
    EXPECT_NE(std::string(error.what()).find("on the CPU"), std::string::npos) << error.what();
  }
}

TEST_F(DeviceLoaderTest, ManyComeAndGo) {
  for (int i = 0; i < 100; ++i) {
    DeviceLoader loader =
        device_loader({.normalize = plain(), .echo_buffer_batches = 1 + i % 4, .echo = 1 + i % 3});
    if (i % 5 == 0) continue;
    loader.start_epoch(i);
    for (int k = 0; k < i % 7; ++k) static_cast<void>(loader.next(stream_));
  }
}

}  // namespace
}  // namespace chunkio::cuda
