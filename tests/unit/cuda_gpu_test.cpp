// The CUDA implementation against its CPU twin, on a real device.

#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <chunkio/chunkio.hpp>
#include <chunkio/cuda/device_loader.hpp>

#include "device/gpu.hpp"
#include "device/normalize_kernel.cuh"
#include "device/picture_writer.hpp"
#include "errors.hpp"
#include "pixels.hpp"
#include "scratch_folder.hpp"

namespace chunkio::device {
namespace {

class CudaGpuTest : public ::testing::Test {
 protected:
  void SetUp() override {
    int devices = 0;
    const cudaError_t status = cudaGetDeviceCount(&devices);
    if (status != cudaSuccess || devices == 0) {
      GTEST_SKIP() << "no CUDA device: " << cudaGetErrorString(status);
    }
    gpu_ = open_gpu(0);
  }

  std::shared_ptr<Gpu> gpu_;
};

NormalizePlan make_plan(const CropPlan& crop, std::size_t channels, Layout input, Layout output,
                        DType dtype) {
  NormalizePlan plan;
  plan.crop = crop;
  for (std::size_t c = 0; c < channels; ++c) {
    const auto i = static_cast<float>(c);
    plan.channels.push_back({.scale = 0.0171F + 0.001F * i, .bias = -2.117F + 0.1F * i});
  }
  plan.input = input;
  plan.output = output;
  plan.dtype = dtype;
  return plan;
}

/// Runs both on the same pictures and tasks, and compares every byte of the output.
void expect_equal_to_cpu(Gpu& gpu, const NormalizePlan& plan, std::mt19937& random) {
  constexpr std::int32_t kPictures = 5;
  constexpr std::int64_t kRows = 9;
  std::vector<std::byte> pictures(static_cast<std::size_t>(kPictures * plan.picture_bytes()));
  for (std::byte& byte : pictures) byte = static_cast<std::byte>(random());
  std::vector<RowTask> tasks;
  const base::PhiloxKey key = augmentation_key(random(), 3);
  for (std::int64_t i = 0; i < kRows; ++i) {
    tasks.push_back(
        {static_cast<std::int32_t>(random() % kPictures), crop_of(plan.crop, key, i, 0)});
  }
  const LabelPlan labels{.values = 3, .input = DType::uint8, .output = DType::float32};
  std::vector<std::byte> label_bytes(kPictures * 3);
  for (std::byte& byte : label_bytes) byte = static_cast<std::byte>(random());

  const auto output_bytes = static_cast<std::size_t>(kRows * plan.output_bytes());
  std::vector<std::byte> expected(output_bytes);
  const PictureWriter writer(plan);
  for (std::int64_t i = 0; i < kRows; ++i) {
    const RowTask& task = tasks[static_cast<std::size_t>(i)];
    writer.write_rows(
        reinterpret_cast<const std::uint8_t*>(pictures.data()) + task.row * plan.picture_bytes(),
        task.crop, 0, plan.crop.height, expected.data() + i * plan.output_bytes());
  }

  std::byte* const device_pictures = gpu.allocate(pictures.size() + 16);
  std::byte* const device_labels = gpu.allocate(label_bytes.size());
  std::byte* const device_tasks = gpu.allocate(tasks.size() * sizeof(RowTask));
  // Marks behind the output, and everywhere in it, show what is not written and what should not be.
  std::byte* const output = gpu.allocate(output_bytes + 64);
  std::byte* const output_labels = gpu.allocate(kRows * 3 * sizeof(float));
  ASSERT_EQ(cudaMemset(output, 0xA5, output_bytes + 64), cudaSuccess);
  // It may still be under way, and streams that do not block do not wait for it.
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  const StreamHandle stream = gpu.create_stream();
  gpu.copy_to_device(device_pictures, pictures.data(), pictures.size(), stream);
  gpu.copy_to_device(device_labels, label_bytes.data(), label_bytes.size(), stream);
  gpu.copy_to_device(device_tasks, reinterpret_cast<const std::byte*>(tasks.data()),
                     tasks.size() * sizeof(RowTask), stream);
  gpu.normalize(plan, labels,
                {.pictures = device_pictures,
                 .labels = device_labels,
                 .tasks = reinterpret_cast<const RowTask*>(device_tasks),
                 .num_rows = kRows,
                 .output = output,
                 .output_labels = output_labels},
                stream);
  gpu.synchronize(stream);
  std::vector<std::byte> got(output_bytes + 64);
  ASSERT_EQ(cudaMemcpy(got.data(), output, got.size(), cudaMemcpyDeviceToHost), cudaSuccess);
  std::vector<float> got_labels(kRows * 3);
  ASSERT_EQ(cudaMemcpy(got_labels.data(), output_labels, got_labels.size() * sizeof(float),
                       cudaMemcpyDeviceToHost),
            cudaSuccess);
  gpu.destroy_stream(stream);
  for (std::byte* memory : {device_pictures, device_labels, device_tasks, output, output_labels}) {
    gpu.free(memory);
  }

  for (std::size_t i = output_bytes; i < got.size(); ++i) ASSERT_EQ(got[i], std::byte{0xA5});
  got.resize(output_bytes);
  ASSERT_EQ(got, expected);
  for (std::size_t i = 0; i < got_labels.size(); ++i) {
    const auto row = static_cast<std::size_t>(tasks[i / 3].row);
    ASSERT_EQ(got_labels[i], static_cast<float>(label_bytes[row * 3 + i % 3]));
  }
}

TEST_F(CudaGpuTest, TheKernelGivesTheBitsOfTheCpu) {
  std::mt19937 random(1);
  const std::vector<CropPlan> crops{
      {.picture_height = 32, .picture_width = 32, .height = 32, .width = 32},
      {.picture_height = 32,
       .picture_width = 32,
       .height = 32,
       .width = 32,
       .padding = 4,
       .random_crop = true,
       .flip = true},
      {.picture_height = 218, .picture_width = 178, .height = 218, .width = 178, .flip = true},
      {.picture_height = 218,
       .picture_width = 178,
       .height = 160,
       .width = 101,
       .random_crop = true},
      {.picture_height = 7, .picture_width = 5, .height = 15, .width = 13, .padding = 4},
      {.picture_height = 1, .picture_width = 1, .height = 1, .width = 1},
      {.picture_height = 3, .picture_width = 700, .height = 3, .width = 699, .random_crop = true},
      {.picture_height = 64,
       .picture_width = 64,
       .height = 2,
       .width = 2,
       .padding = 60,
       .random_crop = true,
       .flip = true}};
  for (const CropPlan& crop : crops) {
    for (std::size_t channels = 1; channels <= 4; ++channels) {
      for (const Layout input : {Layout::nhwc, Layout::nchw}) {
        for (const Layout output : {Layout::nhwc, Layout::nchw}) {
          for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16}) {
            SCOPED_TRACE(std::to_string(crop.picture_height) + "x" +
                         std::to_string(crop.picture_width) + " to " + std::to_string(crop.height) +
                         "x" + std::to_string(crop.width) + ", " + std::to_string(channels) +
                         " channels, " + std::string(to_string(input)) + " to " +
                         std::string(to_string(output)) + " " + std::string(to_string(dtype)));
            expect_equal_to_cpu(*gpu_, make_plan(crop, channels, input, output, dtype), random);
            if (HasFatalFailure()) return;
          }
        }
      }
    }
  }
}

/// Three labels of each of four pictures, as the kernel writes them for pictures 2, 0, 3.
template <class Input, class Output>
void expect_labels(Gpu& gpu, DType input, DType output, const std::vector<Input>& values) {
  const NormalizePlan plan =
      make_plan({.picture_height = 2, .picture_width = 2, .height = 2, .width = 2}, 1, Layout::nhwc,
                Layout::nchw, DType::float32);
  const LabelPlan labels{.values = 3, .input = input, .output = output};
  const std::vector<std::int32_t> rows{2, 0, 3};
  std::vector<RowTask> tasks;
  for (const std::int32_t row : rows) {
    tasks.push_back({row, crop_of(plan.crop, augmentation_key(1, 0), row, 0)});
  }
  const auto shared = [&gpu](std::size_t bytes) {
    return std::shared_ptr<std::byte>(gpu.allocate(bytes), [&gpu](std::byte* p) { gpu.free(p); });
  };
  const auto pictures = shared(static_cast<std::size_t>(4 * plan.picture_bytes()) + kKernelSlack);
  const auto device_labels = shared(values.size() * sizeof(Input));
  const auto device_tasks = shared(tasks.size() * sizeof(RowTask));
  const auto made = shared(static_cast<std::size_t>(3 * plan.output_bytes()));
  const auto made_labels = shared(9 * sizeof(Output));
  // Or a checker of memory would complain of pictures that nobody wrote.
  ASSERT_EQ(cudaMemset(pictures.get(), 0,
                       static_cast<std::size_t>(4 * plan.picture_bytes()) + kKernelSlack),
            cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  const StreamHandle stream = gpu.create_stream();
  gpu.copy_to_device(device_labels.get(), reinterpret_cast<const std::byte*>(values.data()),
                     values.size() * sizeof(Input), stream);
  gpu.copy_to_device(device_tasks.get(), reinterpret_cast<const std::byte*>(tasks.data()),
                     tasks.size() * sizeof(RowTask), stream);
  gpu.normalize(plan, labels,
                {.pictures = pictures.get(),
                 .labels = device_labels.get(),
                 .tasks = reinterpret_cast<const RowTask*>(device_tasks.get()),
                 .num_rows = 3,
                 .output = made.get(),
                 .output_labels = made_labels.get()},
                stream);
  gpu.synchronize(stream);
  gpu.destroy_stream(stream);
  std::vector<Output> got(9);
  ASSERT_EQ(cudaMemcpy(got.data(), made_labels.get(), got.size() * sizeof(Output),
                       cudaMemcpyDeviceToHost),
            cudaSuccess);
  for (std::size_t i = 0; i < got.size(); ++i) {
    const auto from = static_cast<std::size_t>(rows[i / 3]) * 3 + i % 3;
    ASSERT_EQ(got[i], static_cast<Output>(values[from])) << i;
  }
}

TEST_F(CudaGpuTest, LabelsAreConvertedBetweenAllTypes) {
  // Classes: negative ones, too, and numbers that float32 rounds.
  const std::vector<std::int64_t> classes{
      0, 1, -1, 9, 1000, 16'777'217, -5, 33'554'433, 1 << 30, 3, 2, (std::int64_t{1} << 40) + 1};
  const std::vector<std::uint8_t> attributes{0, 1, 255, 127, 128, 1, 0, 0, 1, 7, 254, 3};
  expect_labels<std::int64_t, std::int64_t>(*gpu_, DType::int64, DType::int64, classes);
  expect_labels<std::int64_t, float>(*gpu_, DType::int64, DType::float32, classes);
  expect_labels<std::uint8_t, std::int64_t>(*gpu_, DType::uint8, DType::int64, attributes);
  expect_labels<std::uint8_t, float>(*gpu_, DType::uint8, DType::float32, attributes);
}

/// A picture of one line.
NormalizePlan line_plan(std::int32_t width, std::size_t channels, Layout input) {
  return make_plan({.picture_height = 1, .picture_width = width, .height = 1, .width = width},
                   channels, input, Layout::nchw, DType::float32);
}

/// The widest line that the kernel takes.
std::int32_t widest_line(std::size_t channels, Layout input) {
  std::int32_t fits = 1;
  std::int32_t too_wide = 1 << 20;
  while (too_wide - fits > 1) {
    const std::int32_t middle = fits + (too_wide - fits) / 2;
    (fits_kernel(line_plan(middle, channels, input)) ? fits : too_wide) = middle;
  }
  return fits;
}

// Needs no device.
TEST(FitsKernel, TheLimitIsTheSharedMemoryOfABlock) {
  constexpr std::int32_t kBytes = 48 << 10;
  for (const Layout input : {Layout::nhwc, Layout::nchw}) {
    for (std::size_t channels = 1; channels <= 4; ++channels) {
      SCOPED_TRACE(std::to_string(channels) + " channels " + std::string(to_string(input)));
      const std::int32_t width = widest_line(channels, input);
      const auto bytes = static_cast<std::int64_t>(channels) * width;
      EXPECT_LE(bytes, kBytes);
      // Words of 16 bytes, at either end of each plane.
      EXPECT_GT(bytes, kBytes - 4 * 3 * 16) << "no line that would fit is refused";
      EXPECT_FALSE(fits_kernel(line_plan(width + 1, channels, input)));
    }
  }
}

TEST_F(CudaGpuTest, TheLongestLinesAreRightAndLongerOnesRefused) {
  std::mt19937 random(2);
  for (const Layout input : {Layout::nhwc, Layout::nchw}) {
    for (std::size_t channels = 1; channels <= 4; ++channels) {
      const std::int32_t width = widest_line(channels, input);
      SCOPED_TRACE(width);
      expect_equal_to_cpu(*gpu_, line_plan(width, channels, input), random);
      gpu_->require_supported(line_plan(width, channels, input));
      test::expect_error(ErrorCode::unsupported, {"too long", "crop"},
                         [&] { gpu_->require_supported(line_plan(width + 1, channels, input)); });
    }
  }
}

TEST_F(CudaGpuTest, DeviceLoaderDeliversWhatTheNormalizerDoes) {
  const test::ScratchFolder folder;
  const std::string path = folder.file("train.h5");
  test::write_packed(path, {.num_samples = 1000, .height = 33, .width = 31, .chunk_samples = 50});
  const LoaderOptions host{.batch_size = 64, .seed = 3};
  for (const cuda::DeviceResident resident :
       {cuda::DeviceResident::off, cuda::DeviceResident::require}) {
    const cuda::DeviceOptions options{.normalize = {.dtype = DType::float16,
                                                    .mean = {0.5},
                                                    .std = {0.25},
                                                    .padding = 4,
                                                    .random_crop = true,
                                                    .flip = true},
                                      .big_batch = 3,
                                      .resident = resident};
    Loader reference(Dataset::open(path), host);
    const Normalizer normalize(reference.dataset().info(), options.normalize);
    cuda::DeviceLoader loader(Loader(Dataset::open(path), host), options);
    EXPECT_TRUE(loader.stats().pinned);
    EXPECT_EQ(loader.stats().resident, resident == cuda::DeviceResident::require);
    cudaStream_t stream = nullptr;
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    for (const std::int64_t epoch : {0, 1}) {
      reference.start_epoch(epoch);
      loader.start_epoch(epoch);
      std::int64_t batches = 0;
      while (const auto batch = loader.next(stream)) {
        const auto wanted = reference.next();
        ASSERT_TRUE(wanted);
        std::vector<std::byte> expected(normalize.output_bytes(wanted->size()));
        normalize(*wanted, expected);
        std::vector<std::byte> got(expected.size());
        ASSERT_EQ(cudaMemcpyAsync(got.data(), batch->images().data, got.size(),
                                  cudaMemcpyDeviceToHost, stream),
                  cudaSuccess);
        std::vector<std::int64_t> labels(static_cast<std::size_t>(wanted->size()));
        ASSERT_EQ(cudaMemcpyAsync(labels.data(), batch->labels().data, labels.size() * 8,
                                  cudaMemcpyDeviceToHost, stream),
                  cudaSuccess);
        ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
        ASSERT_EQ(got, expected) << batches;
        const auto host_labels = wanted->labels().values<std::int64_t>();
        ASSERT_TRUE(
            std::equal(labels.begin(), labels.end(), host_labels.begin(), host_labels.end()));
        ++batches;
      }
      EXPECT_EQ(batches, reference.num_steps());
    }
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  }
}

TEST_F(CudaGpuTest, WhatIsNotThereIsAnError) {
  test::expect_error(ErrorCode::cuda_failed, {"no CUDA device 4711"},
                     [] { static_cast<void>(open_gpu(4711)); });
  test::expect_error(ErrorCode::out_of_resources, {"device memory"},
                     [&] { static_cast<void>(gpu_->allocate(std::size_t{1} << 50)); });
}

}  // namespace
}  // namespace chunkio::device
