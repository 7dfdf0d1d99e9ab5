// The kernel's arithmetic, run on the CPU: every thread of every block, one after the other. What a
// device adds to it, barriers and the widths of accesses, is tested on one (cuda_gpu_test.cpp).
#include "device/normalize_tile.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "device/kernel_plan.hpp"
#include "device/resize_kernel_plan.hpp"
#include "device/resize_steps.hpp"
#include "support/kernel_cases.hpp"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace chunkio::device {
namespace {

constexpr std::byte kMark{0xA5};

/// Memory as a device would have it, aligned to 256 bytes and exactly as large as asked for: guards
/// on both sides show what is written there, and AddressSanitizer also what is read.
class DeviceMemoryBlock {
 public:
  explicit DeviceMemoryBlock(std::size_t bytes)
      : bytes_(bytes), all_(allocate(bytes + 2 * kGuard)) {
    std::memset(all_.get(), std::to_integer<int>(kMark), bytes + 2 * kGuard);
    guard(true);
  }
  DeviceMemoryBlock(const DeviceMemoryBlock&) = delete;
  DeviceMemoryBlock& operator=(const DeviceMemoryBlock&) = delete;
  ~DeviceMemoryBlock() { guard(false); }

  [[nodiscard]] std::byte* data() const { return all_.get() + kGuard; }
  [[nodiscard]] std::size_t size() const { return bytes_; }
  void fill(std::byte value) { std::memset(data(), std::to_integer<int>(value), bytes_); }
  void fill(const void* from, std::size_t bytes) { std::memcpy(data(), from, bytes); }

  [[nodiscard]] bool guards_are_whole() const {
    guard(false);
    bool whole = true;
    for (std::size_t i = 0; i < kGuard; ++i) {
      whole = whole && all_[i] == kMark && all_[kGuard + bytes_ + i] == kMark;
    }
    guard(true);
    return whole;
  }

 private:
  static constexpr std::size_t kGuard = 256;
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete[](memory, std::align_val_t{256}); }
  };
  static std::byte* allocate(std::size_t bytes) {
    return static_cast<std::byte*>(::operator new[](bytes, std::align_val_t{256}));
  }
  void guard([[maybe_unused]] bool on) const {
#if defined(__SANITIZE_ADDRESS__)
    if (on) {
      ASAN_POISON_MEMORY_REGION(all_.get(), kGuard);
      ASAN_POISON_MEMORY_REGION(all_.get() + kGuard + bytes_, kGuard);
    } else {
      ASAN_UNPOISON_MEMORY_REGION(all_.get(), bytes_ + 2 * kGuard);
    }
#endif
  }

  std::size_t bytes_;
  std::unique_ptr<std::byte[], Free> all_;
};

/// A batch in such memory.
class DeviceBatch {
 public:
  DeviceBatch(const NormalizePlan& plan, const test::KernelBatch& batch, std::size_t shift = 0)
      : kernel_(make_kernel_plan(plan)),
        shift_(shift),
        rows_(static_cast<std::int64_t>(batch.tasks.size())),
        // What lies behind the last image is readable up to the end of a word, no further.
        images_((batch.images.size() + kWordBytes - 1) / kWordBytes * kWordBytes),
        labels_(batch.labels.size()),
        tasks_(batch.tasks.size() * sizeof(RowTask)),
        boxes_(batch.boxes.size() * sizeof(image::Box)),
        scratch_(static_cast<std::size_t>(resize_scratch_bytes(plan, rows_))),
        output_(batch.output.size() + shift),
        output_labels_(batch.output_labels.size() * sizeof(float)),
        shared_(static_cast<std::size_t>(shared_bytes(kernel_))) {
    images_.fill(batch.images.data(), batch.images.size());
    labels_.fill(batch.labels.data(), batch.labels.size());
    tasks_.fill(batch.tasks.data(), tasks_.size());
    if (!batch.boxes.empty()) boxes_.fill(batch.boxes.data(), boxes_.size());
  }

  [[nodiscard]] const KernelPlan& kernel() const { return kernel_; }
  [[nodiscard]] BatchWork work() const {
    return {.images = images_.data(),
            .labels = labels_.data(),
            .tasks = reinterpret_cast<const RowTask*>(tasks_.data()),
            .num_rows = rows_,
            .output = output_.data() + shift_,
            .output_labels = output_labels_.data(),
            .boxes = reinterpret_cast<const image::Box*>(boxes_.data()),
            .scratch = scratch_.data()};
  }
  [[nodiscard]] DeviceMemoryBlock& output() { return output_; }
  [[nodiscard]] DeviceMemoryBlock& output_labels() { return output_labels_; }
  [[nodiscard]] DeviceMemoryBlock& shared() { return shared_; }
  [[nodiscard]] DeviceMemoryBlock& scratch() { return scratch_; }

  [[nodiscard]] bool guards_are_whole() const {
    return scratch_.guards_are_whole() && output_.guards_are_whole() &&
           output_labels_.guards_are_whole() && shared_.guards_are_whole();
  }

 private:
  KernelPlan kernel_;
  std::size_t shift_;
  std::int64_t rows_;
  DeviceMemoryBlock images_;
  DeviceMemoryBlock labels_;
  DeviceMemoryBlock tasks_;
  DeviceMemoryBlock boxes_;
  DeviceMemoryBlock scratch_;
  DeviceMemoryBlock output_;
  DeviceMemoryBlock output_labels_;
  DeviceMemoryBlock shared_;
};

/// In which order the threads of a block come: any is possible on a device.
enum class Order : std::uint8_t { forward, backward };

template <class Thread>
void for_each_thread(const KernelPlan& kernel, Order order, Thread thread) {
  for (int i = 0; i < kernel.threads; ++i) {
    thread(order == Order::forward ? i : kernel.threads - 1 - i);
  }
}

/// As the kernel: all threads of a block stage, then all write.
void run_tiles(const NormalizePlan& plan, DeviceBatch& batch, const BatchWork& work, Order order) {
  const KernelPlan& kernel = batch.kernel();
  const auto num_blocks = static_cast<unsigned>(work.num_rows * kernel.tiles);
  with_kernel_form(plan, kernel, [&]<int channels, DType dtype, Layout output, bool joined>() {
    for (unsigned block = 0; block < num_blocks; ++block) {
      // Shared memory holds what another block left there.
      batch.shared().fill(order == Order::forward ? std::byte{0x3C} : std::byte{0xC3});
      const Tile tile = tile_of(kernel, channels, work, block, batch.shared().data());
      for_each_thread(kernel, order, [&](int thread) {
        write_labels(test::KernelBatch::label_plan(), tile, work, thread, kernel.threads);
        stage(kernel, tile, thread);
      });
      for_each_thread(kernel, order, [&](int thread) {
        write<channels, dtype, output, joined>(kernel, tile, work, thread);
      });
    }
  });
}

/// As the kernels that resize: one after the other, with all of their threads, of which the last
/// ones have nothing to do.
void run_resize(const ResizeKernelPlan& plan, const ResizeWork& work, Order order) {
  const auto for_each = [order](std::int64_t count, const auto& thread) {
    const std::int64_t all = (count + kMaxThreads - 1) / kMaxThreads * kMaxThreads;
    for (std::int64_t i = 0; i < all; ++i) thread(order == Order::forward ? i : all - 1 - i);
  };
  for_each(work.num_rows * (plan.output.width + plan.output.height),
           [&](std::int64_t thread) { weigh(plan, work, thread); });
  const std::int64_t planes = work.num_rows * plan.planes;
  with_pixel_bytes(plan, [&]<int pixel_bytes>() {
    for (std::int64_t plane = 0; plane < planes; ++plane) {
      for_each(plan.between_pixels(), [&](std::int64_t pixel) {
        resize_first<pixel_bytes>(plan, work, plane, static_cast<std::uint32_t>(pixel));
      });
    }
    for (std::int64_t plane = 0; plane < planes; ++plane) {
      for_each(plan.output_pixels(), [&](std::int64_t pixel) {
        resize_second<pixel_bytes>(plan, work, plane, static_cast<std::uint32_t>(pixel));
      });
    }
  });
}

void run_kernel(const NormalizePlan& plan, DeviceBatch& batch, Order order) {
  const BatchWork work = batch.work();
  if (!plan.resized_crop) {
    run_tiles(plan, batch, work, order);
    return;
  }
  batch.scratch().fill(kMark);
  const std::int64_t rows = resize_group_rows(plan, work.num_rows);
  for (std::int64_t first = 0; first < work.num_rows; first += rows) {
    const ResizeGroup group = resize_group(plan, test::KernelBatch::label_plan(), work, first);
    run_resize(make_resize_kernel_plan(plan), group.resize, order);
    run_tiles(plan, batch, group.normalize, order);
  }
}

/// \param shift  bytes that the output begins behind a word.
void expect_equal_to_twin(const NormalizePlan& plan, std::int64_t rows, std::mt19937& random,
                          std::size_t shift = 0) {
  const test::KernelBatch expected = test::kernel_batch(plan, rows, random);
  DeviceBatch batch(plan, expected, shift);
  for (const Order order : {Order::forward, Order::backward}) {
    SCOPED_TRACE(order == Order::forward ? "forward" : "backward");
    batch.output().fill(kMark);
    batch.output_labels().fill(kMark);
    run_kernel(plan, batch, order);
    ASSERT_TRUE(batch.guards_are_whole());
    for (std::size_t i = 0; i < expected.output.size(); ++i) {
      ASSERT_EQ(batch.output().data()[shift + i], expected.output[i])
          << "byte " << i << " of " << expected.output.size();
    }
    ASSERT_EQ(std::memcmp(batch.output_labels().data(), expected.output_labels.data(),
                          batch.output_labels().size()),
              0);
  }
}

std::vector<CropPlan> all_crops() {
  std::vector<CropPlan> crops = test::kernel_crops();
  for (const CropPlan& crop : test::small_kernel_crops()) crops.push_back(crop);
  return crops;
}

/// By the number of the crop.
class NormalizeTileTest : public ::testing::TestWithParam<std::size_t> {};

TEST_P(NormalizeTileTest, GivesTheBitsOfTheTwinInEitherOrderOfThreads) {
  std::mt19937 random(1);
  const CropPlan crop = all_crops()[GetParam()];
  const bool large = std::int64_t{crop.height} * crop.width > 10'000;
  test::for_each_kernel_case(
      crop, [&](const NormalizePlan& plan) { expect_equal_to_twin(plan, large ? 3 : 9, random); });
}

INSTANTIATE_TEST_SUITE_P(Crops, NormalizeTileTest,
                         ::testing::Range<std::size_t>(0, all_crops().size()),
                         [](const auto& suite) {
                           const CropPlan crop = all_crops()[suite.param];
                           return std::to_string(crop.image_height) + "x" +
                                  std::to_string(crop.image_width) + "To" +
                                  std::to_string(crop.height) + "x" + std::to_string(crop.width) +
                                  "Padding" + std::to_string(crop.padding);
                         });

TEST(NormalizeTile, OutputsMayBeginAtAnyElement) {
  std::mt19937 random(8);
  for (const CropPlan& crop : test::small_kernel_crops()) {
    test::for_each_kernel_case(crop, [&](const NormalizePlan& plan) {
      expect_equal_to_twin(plan, 5, random, size_of(plan.dtype));
    });
    if (HasFatalFailure()) return;
  }
}

TEST(NormalizeTile, TheLongestLinesAreRight) {
  std::mt19937 random(2);
  for (const Layout input : {Layout::nhwc, Layout::nchw}) {
    for (std::size_t channels = 1; channels <= 4; ++channels) {
      const std::int32_t width = test::widest_line(channels, input);
      SCOPED_TRACE(width);
      expect_equal_to_twin(test::line_case(width, channels, input), 2, random);
      if (HasFatalFailure()) return;
    }
  }
}

// The kernels that resize, by the number of the crop.
class ResizedTileTest : public ::testing::TestWithParam<std::size_t> {};

TEST_P(ResizedTileTest, GivesTheBitsOfTheTwinInEitherOrderOfThreads) {
  std::mt19937 random(6);
  const CropPlan crop = test::resized_kernel_crops()[GetParam()];
  test::for_each_kernel_case(crop, [&](const NormalizePlan& plan) {
    expect_equal_to_twin(test::resized_case(plan), 6, random);
  });
}

INSTANTIATE_TEST_SUITE_P(Crops, ResizedTileTest,
                         ::testing::Range<std::size_t>(0, test::resized_kernel_crops().size()),
                         [](const auto& suite) {
                           const CropPlan crop = test::resized_kernel_crops()[suite.param];
                           return std::to_string(crop.image_height) + "x" +
                                  std::to_string(crop.image_width) + "To" +
                                  std::to_string(crop.height) + "x" + std::to_string(crop.width);
                         });

TEST(ResizedTile, RandomSizesGiveTheBitsOfTheTwin) {
  std::mt19937 random(7);
  const auto side = [&random](std::uint32_t most) {
    return 1 + static_cast<std::int32_t>(random() % most);
  };
  for (int i = 0; i < 60; ++i) {
    const CropPlan crop{.image_height = side(120),
                        .image_width = side(120),
                        .height = side(50),
                        .width = side(50),
                        .flip = true};
    const std::size_t channels = 1 + random() % 4;
    const Layout input = random() % 2 == 0 ? Layout::nhwc : Layout::nchw;
    const Layout output = random() % 2 == 0 ? Layout::nhwc : Layout::nchw;
    const NormalizePlan plan =
        test::resized_case(test::kernel_case(crop, channels, input, output, DType::float32));
    SCOPED_TRACE(test::describe(plan));
    expect_equal_to_twin(plan, 5, random);
    if (HasFatalFailure()) return;
  }
}

// More samples than scratch memory has room for at a time.
TEST(ResizedTile, GroupsOfSamplesAreThoseOfTheBatch) {
  std::mt19937 random(8);
  const NormalizePlan plan = test::resized_case(test::kernel_case(
      {.image_height = 2000, .image_width = 2000, .height = 1400, .width = 3, .flip = true}, 3,
      Layout::nhwc, Layout::nchw, DType::bfloat16));
  ASSERT_EQ(resize_group_rows(plan, 9), 7);
  expect_equal_to_twin(plan, 9, random);
}

// Where images lie in a word is what staging has to get right: every width up to a few words.
TEST(NormalizeTile, RowsMayBeginAndEndAnywhereInAWord) {
  std::mt19937 random(3);
  for (std::int32_t width = 1; width <= 50; ++width) {
    const CropPlan crop{.image_height = 3,
                        .image_width = width,
                        .height = 2,
                        .width = (width + 1) / 2,
                        .padding = 1,
                        .random_crop = true,
                        .flip = true};
    test::for_each_kernel_case(
        crop, [&](const NormalizePlan& plan) { expect_equal_to_twin(plan, 4, random); });
    if (HasFatalFailure()) return;
  }
}

/// Which bytes of `memory` an action writes, whatever it writes there.
template <class Action>
std::set<std::size_t> bytes_written(DeviceMemoryBlock& memory, Action action) {
  std::vector<std::byte> after_zeros(memory.size());
  memory.fill(std::byte{0});
  action();
  std::memcpy(after_zeros.data(), memory.data(), memory.size());
  memory.fill(std::byte{0xFF});
  action();
  std::set<std::size_t> written;
  for (std::size_t i = 0; i < memory.size(); ++i) {
    if (memory.data()[i] == after_zeros[i]) written.insert(i);
  }
  return written;
}

// Two threads that write the same byte would be a race even if they agree on it.
TEST(NormalizeTile, EveryByteIsWrittenByOneThread) {
  std::mt19937 random(4);
  // More words in each phase than a block has threads, so that threads come to a second one.
  CropPlan crop{.image_height = 70,
                .image_width = 64,
                .height = 72,
                .width = 63,
                .padding = 3,
                .random_crop = true,
                .flip = true};
  const auto check = [&](const NormalizePlan& plan) {
    const test::KernelBatch expected = test::kernel_batch(plan, 1, random);
    DeviceBatch batch(plan, expected);
    const KernelPlan& kernel = batch.kernel();
    const BatchWork work = batch.work();
    const auto num_blocks = static_cast<unsigned>(work.num_rows * kernel.tiles);
    std::vector<int> writers(batch.output().size());
    with_kernel_form(plan, kernel, [&]<int channels, DType dtype, Layout output, bool joined>() {
      for (unsigned block = 0; block < num_blocks; ++block) {
        const Tile tile = tile_of(kernel, channels, work, block, batch.shared().data());
        std::vector<int> stagers(batch.shared().size());
        for_each_thread(kernel, Order::forward, [&](int thread) {
          for (const std::size_t i :
               bytes_written(batch.shared(), [&] { stage(kernel, tile, thread); })) {
            ++stagers[i];
          }
        });
        for (const int count : stagers) ASSERT_LE(count, 1);
        for_each_thread(kernel, Order::forward, [&](int thread) { stage(kernel, tile, thread); });
        for_each_thread(kernel, Order::forward, [&](int thread) {
          for (const std::size_t i : bytes_written(batch.output(), [&] {
                 write<channels, dtype, output, joined>(kernel, tile, work, thread);
               })) {
            ++writers[i];
          }
        });
      }
    });
    for (const int count : writers) ASSERT_EQ(count, 1);
  };
  test::for_each_kernel_case(crop, check);
  crop.width = 64;  // Whose pixels are joined.
  if (!HasFatalFailure()) test::for_each_kernel_case(crop, check);
}

/// All labels of images 2, 0, 3 of four, as all threads of the blocks write them.
template <class Input, class Output>
void expect_labels(DType input, DType output, const std::vector<Input>& values) {
  const std::vector<RowTask> tasks{{2, {}}, {0, {}}, {3, {}}};
  const auto each = static_cast<std::int64_t>(values.size() / 4);
  const LabelPlan plan{.values = each, .input = input, .output = output};
  DeviceMemoryBlock labels(values.size() * sizeof(Input));
  labels.fill(values.data(), labels.size());
  DeviceMemoryBlock got(tasks.size() * static_cast<std::size_t>(each) * sizeof(Output));
  const KernelPlan kernel = make_kernel_plan(
      test::kernel_case({.image_height = 1, .image_width = 1, .height = 1, .width = 1}, 1,
                        Layout::nhwc, Layout::nchw, DType::float32));
  const BatchWork work{
      .labels = labels.data(), .tasks = tasks.data(), .num_rows = 3, .output_labels = got.data()};
  for (unsigned block = 0; block < 3; ++block) {
    const Tile tile = tile_of(kernel, 1, work, block, nullptr);
    for_each_thread(kernel, Order::backward,
                    [&](int thread) { write_labels(plan, tile, work, thread, kernel.threads); });
  }
  ASSERT_TRUE(got.guards_are_whole());
  const auto per_row = static_cast<std::size_t>(each);
  for (std::size_t i = 0; i < tasks.size() * per_row; ++i) {
    Output value{};
    std::memcpy(&value, got.data() + i * sizeof value, sizeof value);
    const auto from = static_cast<std::size_t>(tasks[i / per_row].row) * per_row + i % per_row;
    ASSERT_EQ(value, static_cast<Output>(values[from])) << i;
  }
}

TEST(NormalizeTile, LabelsAreConvertedBetweenAllTypes) {
  // Classes: negative ones, too, and numbers that float32 rounds.
  const std::vector<std::int64_t> classes{
      0, 1, -1, 9, 1000, 16'777'217, -5, 33'554'433, 1 << 30, 3, 2, (std::int64_t{1} << 40) + 1};
  expect_labels<std::int64_t, std::int64_t>(DType::int64, DType::int64, classes);
  expect_labels<std::int64_t, float>(DType::int64, DType::float32, classes);
  // Attributes: more of them than a block has threads.
  std::vector<std::uint8_t> attributes(4 * 300);
  for (std::size_t i = 0; i < attributes.size(); ++i) {
    attributes[i] = static_cast<std::uint8_t>(i * 7);
  }
  expect_labels<std::uint8_t, std::int64_t>(DType::uint8, DType::int64, attributes);
  expect_labels<std::uint8_t, float>(DType::uint8, DType::float32, attributes);
}

TEST(NormalizedFast, HasTheBitsOfTheDefinition) {
  std::mt19937 random(5);
  std::uniform_real_distribution<float> exponent(-30, 10);
  std::uniform_real_distribution<float> fraction(-1, 1);
  std::vector<ChannelScale> scales{{1, 0}, {0, 0}, {1.0F / 255, 0}, {0.0171F, -2.117F}};
  for (int i = 0; i < 2000; ++i) {
    scales.push_back({.scale = std::exp2(exponent(random)) * fraction(random),
                      .bias = std::exp2(exponent(random)) * fraction(random)});
  }
  for (const ChannelScale scale : scales) {
    for (std::uint32_t value = 0; value < 256; ++value) {
      ASSERT_EQ(float_bits(normalized_fast(value, scale)),
                float_bits(normalized(static_cast<std::uint8_t>(value), scale)))
          << value << " " << scale.scale << " " << scale.bias;
    }
  }
}

}  // namespace
}  // namespace chunkio::device
