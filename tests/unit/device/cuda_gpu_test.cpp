// The CUDA implementation against its CPU twin, on a real device.

#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <chunkio/chunkio.hpp>
#include <chunkio/cuda/device_loader.hpp>

#include "device/gpu.hpp"
#include "device/resize_kernel_plan.hpp"
#include "harness/scratch_folder.hpp"
#include "support/errors.hpp"
#include "support/kernel_cases.hpp"
#include "support/pixels.hpp"

namespace chunkio::device {
namespace {

class CudaGpuTest : public ::testing::Test {
 protected:
  void SetUp() override {
    gpu_ = open_gpu(0);
    stream_ = GpuStream(gpu_);
  }

  template <class Value>
  [[nodiscard]] DeviceBuffer put(const std::vector<Value>& values) const {
    const std::size_t bytes = values.size() * sizeof(Value);
    DeviceBuffer memory(gpu_, bytes);
    gpu_->copy_to_device(memory.get(), reinterpret_cast<const std::byte*>(values.data()), bytes,
                         stream_.get());
    gpu_->synchronize(stream_.get());
    return memory;
  }
  /// When all that was put into the stream is done.
  template <class Value>
  [[nodiscard]] std::vector<Value> get(const DeviceBuffer& memory, std::size_t size) const {
    gpu_->synchronize(stream_.get());
    std::vector<Value> values(size);
    EXPECT_EQ(cudaMemcpy(values.data(), memory.get(), size * sizeof(Value), cudaMemcpyDeviceToHost),
              cudaSuccess);
    return values;
  }

  /// Runs both on the same images and tasks, and compares every byte of the output.
  void expect_equal_to_cpu(const NormalizePlan& plan, std::mt19937& random) const {
    constexpr std::int64_t kRows = 9;
    const test::KernelBatch batch = test::kernel_batch(plan, kRows, random);
    // Or a checker of memory would complain of words that reach beyond the last image.
    std::vector<std::byte> padded = batch.images;
    padded.resize(padded.size() + kKernelSlack);
    // Marks behind the output, and everywhere in it, show what is not written and what should not
    // be.
    std::vector<std::byte> wanted(batch.output.size() + 64, std::byte{0xA5});
    const DeviceBuffer images = put(padded);
    const DeviceBuffer labels = put(batch.labels);
    const DeviceBuffer tasks = put(batch.tasks);
    const DeviceBuffer boxes = batch.boxes.empty() ? DeviceBuffer() : put(batch.boxes);
    const std::int64_t scratch_bytes = resize_scratch_bytes(plan, kRows);
    const DeviceBuffer scratch = scratch_bytes == 0
                                     ? DeviceBuffer()
                                     : DeviceBuffer(gpu_, static_cast<std::size_t>(scratch_bytes));
    const DeviceBuffer output = put(wanted);
    const DeviceBuffer output_labels(gpu_, batch.output_labels.size() * sizeof(float));
    gpu_->normalize(plan, test::KernelBatch::label_plan(),
                    {.images = images.get(),
                     .labels = labels.get(),
                     .tasks = reinterpret_cast<const RowTask*>(tasks.get()),
                     .num_rows = kRows,
                     .output = output.get(),
                     .output_labels = output_labels.get(),
                     .boxes = reinterpret_cast<const image::Box*>(boxes.get()),
                     .scratch = scratch.get()},
                    stream_.get());
    std::copy(batch.output.begin(), batch.output.end(), wanted.begin());
    ASSERT_EQ(get<std::byte>(output, wanted.size()), wanted);
    ASSERT_EQ(get<float>(output_labels, batch.output_labels.size()), batch.output_labels);
  }

  /// Three labels of each of four images, as the kernel writes them for images 2, 0, 3.
  template <class Input, class Output>
  void expect_labels(DType input, DType output, const std::vector<Input>& values) const {
    const NormalizePlan plan =
        test::kernel_case({.image_height = 2, .image_width = 2, .height = 2, .width = 2}, 1,
                          Layout::nhwc, Layout::nchw, DType::float32);
    const std::vector<std::int32_t> rows{2, 0, 3};
    std::vector<RowTask> tasks;
    for (const std::int32_t row : rows) {
      tasks.push_back({row, crop_of(plan.crop, base::augmentation_key(1, 0), row, 0)});
    }
    const DeviceBuffer images = put(
        std::vector<std::byte>(static_cast<std::size_t>(4 * plan.image_bytes()) + kKernelSlack));
    const DeviceBuffer labels = put(values);
    const DeviceBuffer device_tasks = put(tasks);
    const DeviceBuffer made(gpu_, static_cast<std::size_t>(3 * plan.output_bytes()));
    const DeviceBuffer made_labels(gpu_, 9 * sizeof(Output));
    gpu_->normalize(plan, {.values = 3, .input = input, .output = output},
                    {.images = images.get(),
                     .labels = labels.get(),
                     .tasks = reinterpret_cast<const RowTask*>(device_tasks.get()),
                     .num_rows = 3,
                     .output = made.get(),
                     .output_labels = made_labels.get()},
                    stream_.get());
    const std::vector<Output> got = get<Output>(made_labels, 9);
    for (std::size_t i = 0; i < got.size(); ++i) {
      const auto from = static_cast<std::size_t>(rows[i / 3]) * 3 + i % 3;
      ASSERT_EQ(got[i], static_cast<Output>(values[from])) << i;
    }
  }

  std::shared_ptr<Gpu> gpu_;
  GpuStream stream_;
};

TEST_F(CudaGpuTest, TheKernelGivesTheBitsOfTheCpu) {
  std::mt19937 random(1);
  for (const CropPlan& crop : test::kernel_crops()) {
    test::for_each_kernel_case(
        crop, [&](const NormalizePlan& plan) { expect_equal_to_cpu(plan, random); });
    if (HasFatalFailure()) return;
  }
}

TEST_F(CudaGpuTest, TheKernelsThatResizeGiveTheBitsOfTheCpu) {
  std::mt19937 random(4);
  for (const CropPlan& crop : test::resized_kernel_crops()) {
    test::for_each_kernel_case(crop, [&](const NormalizePlan& plan) {
      expect_equal_to_cpu(test::resized_case(plan), random);
    });
    if (HasFatalFailure()) return;
  }
}

// Every form of the kernel on little data: tools that follow each access are slow.
TEST_F(CudaGpuTest, EveryFormGivesTheBitsOfTheCpuOnSmallImages) {
  std::mt19937 random(3);
  for (const CropPlan& crop : test::small_kernel_crops()) {
    test::for_each_kernel_case(
        crop, [&](const NormalizePlan& plan) { expect_equal_to_cpu(plan, random); });
    if (HasFatalFailure()) return;
  }
}

TEST_F(CudaGpuTest, LabelsAreConvertedBetweenAllTypes) {
  // Classes: negative ones, too, and numbers that float32 rounds.
  const std::vector<std::int64_t> classes{
      0, 1, -1, 9, 1000, 16'777'217, -5, 33'554'433, 1 << 30, 3, 2, (std::int64_t{1} << 40) + 1};
  const std::vector<std::uint8_t> attributes{0, 1, 255, 127, 128, 1, 0, 0, 1, 7, 254, 3};
  expect_labels<std::int64_t, std::int64_t>(DType::int64, DType::int64, classes);
  expect_labels<std::int64_t, float>(DType::int64, DType::float32, classes);
  expect_labels<std::uint8_t, std::int64_t>(DType::uint8, DType::int64, attributes);
  expect_labels<std::uint8_t, float>(DType::uint8, DType::float32, attributes);
}

TEST_F(CudaGpuTest, RowsOfFieldsAreGatheredWhateverTheirLength) {
  const std::vector<std::int32_t> rows{2, 0, 3, 3, 1};
  std::vector<RowTask> tasks;
  for (const std::int32_t row : rows) tasks.push_back({.row = row});
  const DeviceBuffer device_tasks = put(tasks);
  for (const std::size_t row_bytes : {1U, 3U, 4U, 8U, 12U, 16U, 48U, 700U, 38804U}) {
    std::vector<std::byte> field(4 * row_bytes);
    for (std::size_t i = 0; i < field.size(); ++i) {
      field[i] = static_cast<std::byte>(i * 7 + i / 251);
    }
    const DeviceBuffer source = put(field);
    const DeviceBuffer target(gpu_, rows.size() * row_bytes);
    gpu_->gather({.source = source.get(),
                  .row_bytes = static_cast<std::int64_t>(row_bytes),
                  .tasks = reinterpret_cast<const RowTask*>(device_tasks.get()),
                  .num_rows = std::ssize(rows),
                  .target = target.get()},
                 stream_.get());
    std::vector<std::byte> wanted;
    for (const std::int32_t row : rows) {
      const auto begin =
          field.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(row) * row_bytes);
      wanted.insert(wanted.end(), begin, begin + static_cast<std::ptrdiff_t>(row_bytes));
    }
    EXPECT_EQ(get<std::byte>(target, wanted.size()), wanted) << row_bytes;
  }
}

TEST_F(CudaGpuTest, TheLongestLinesAreRightAndLongerOnesRefused) {
  std::mt19937 random(2);
  for (const Layout input : {Layout::nhwc, Layout::nchw}) {
    for (std::size_t channels = 1; channels <= 4; ++channels) {
      const std::int32_t width = test::widest_line(channels, input);
      SCOPED_TRACE(width);
      expect_equal_to_cpu(test::line_case(width, channels, input), random);
      gpu_->require_supported(test::line_case(width, channels, input));
      test::expect_error(ErrorCode::unsupported, {"too long", "crop"}, [&] {
        gpu_->require_supported(test::line_case(width + 1, channels, input));
      });
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
                                      .echo_buffer_batches = 3,
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
        ASSERT_EQ(cudaMemcpyAsync(got.data(), batch->images().data(), got.size(),
                                  cudaMemcpyDeviceToHost, stream),
                  cudaSuccess);
        std::vector<std::int64_t> labels(static_cast<std::size_t>(wanted->size()));
        ASSERT_EQ(cudaMemcpyAsync(labels.data(), batch->labels().data(), labels.size() * 8,
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

TEST_F(CudaGpuTest, LoadersThatAreDroppedAnywhereLeaveNoMemory) {
  const test::ScratchFolder folder;
  const std::string path = folder.file("train.h5");
  test::write_packed(path, {.num_samples = 500, .height = 32, .width = 32, .chunk_samples = 25});
  const Dataset dataset = Dataset::open(path);
  std::mt19937 random(5);
  const auto drop_some = [&](int count) {
    for (int i = 0; i < count; ++i) {
      NormalizeOptions normalize{.mean = {0.5}, .std = {0.25}};
      if (random() % 3 == 0) normalize.random_resized_crop = ResizedCropRanges{};
      LoaderOptions host{.batch_size = 32, .io = {.num_threads = 2}};
      if (random() % 2 == 0) host.fields = {"weights"};
      cuda::DeviceLoader loader(Loader(dataset, host),
                                {.normalize = normalize,
                                 .echo_buffer_batches = 1 + static_cast<std::int64_t>(random() % 4),
                                 .echo = 1 + static_cast<std::int64_t>(random() % 3),
                                 .resident = random() % 2 == 0 ? cuda::DeviceResident::off
                                                               : cuda::DeviceResident::require});
      if (random() % 5 == 0) continue;
      loader.start_epoch(i);
      std::vector<cuda::DeviceBatch> held;  // beyond the loader
      for (auto left = random() % 12; left > 0; --left) {
        auto batch = loader.next(stream_.get());
        if (!batch) break;
        if (held.empty() && random() % 4 == 0) held.push_back(*std::move(batch));
      }
      if (random() % 4 == 0) gpu_->synchronize(stream_.get());
    }
    gpu_->synchronize(stream_.get());
  };
  drop_some(50);  // What CUDA keeps once it was used is not counted.
  const std::int64_t before = gpu_->memory().free_bytes;
  drop_some(1000);
  EXPECT_GE(gpu_->memory().free_bytes, before);
}

TEST_F(CudaGpuTest, AThreadThatUsesNoDeviceIsLeftWithoutOne) {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(driver, nullptr) << dlerror();
  const auto current =
      reinterpret_cast<decltype(&cuCtxGetCurrent)>(dlsym(driver, "cuCtxGetCurrent"));
  ASSERT_NE(current, nullptr) << dlerror();
  std::thread([&] {
    gpu_->destroy_stream(gpu_->create_stream());
    CUcontext context = nullptr;
    EXPECT_EQ(current(&context), CUDA_SUCCESS);
    EXPECT_EQ(context, nullptr);
  }).join();
  EXPECT_EQ(dlclose(driver), 0);
}

TEST_F(CudaGpuTest, WhatIsNotThereIsAnError) {
  test::expect_error(ErrorCode::cuda_failed, {"no CUDA device 4711"},
                     [] { static_cast<void>(open_gpu(4711)); });
  test::expect_error(ErrorCode::out_of_resources, {"device memory"},
                     [&] { static_cast<void>(gpu_->allocate(std::size_t{1} << 50)); });
}

}  // namespace
}  // namespace chunkio::device
