#include "device/kernel_plan.hpp"

#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include "support/kernel_cases.hpp"

namespace chunkio::device {
namespace {

constexpr std::int32_t kSharedBytes = 48 << 10;

TEST(FitsKernel, TheLimitIsTheSharedMemoryOfABlock) {
  for (const Layout input : {Layout::nhwc, Layout::nchw}) {
    for (std::size_t channels = 1; channels <= 4; ++channels) {
      SCOPED_TRACE(std::to_string(channels) + " channels " + std::string(to_string(input)));
      const std::int32_t width = test::widest_line(channels, input);
      const auto bytes = static_cast<std::int64_t>(channels) * width;
      EXPECT_LE(bytes, kSharedBytes);
      // Words of 16 bytes, at either end of each plane.
      EXPECT_GT(bytes, kSharedBytes - 4 * 3 * 16) << "no line that would fit is refused";
      EXPECT_FALSE(fits_kernel(test::line_case(width + 1, channels, input)));
    }
  }
}

TEST(FitsKernel, AnOutputThatIsWiderThanItsImageIsLimitedToo) {
  const auto plan = [](std::int32_t width) {
    return test::kernel_case(
        {.image_height = 1, .image_width = 1, .height = 1, .width = width, .padding = width}, 4,
        Layout::nhwc, Layout::nchw, DType::float32);
  };
  // Padding is staged, too.
  EXPECT_TRUE(fits_kernel(plan(kSharedBytes / 4 - 4)));
  EXPECT_FALSE(fits_kernel(plan(kSharedBytes / 4)));
}

TEST(KernelPlan, TilesCoverAllRowsOnceAndKeepToTheirMemory) {
  for (const CropPlan& crop : test::kernel_crops()) {
    test::for_each_kernel_case(crop, [](const NormalizePlan& plan) {
      const KernelPlan made = make_kernel_plan(plan);
      EXPECT_GE(made.tile_rows, 1);
      EXPECT_GE(made.tiles * made.tile_rows, plan.crop.height);
      EXPECT_LT((made.tiles - 1) * made.tile_rows, plan.crop.height) << "no tile is empty";
      EXPECT_LE(shared_bytes(made), kSharedBytes);
      EXPECT_EQ(made.threads % kWarp, 0);
      if (plan.output == Layout::nhwc) {
        const auto lanes = kWordBytes / static_cast<int>(size_of(plan.dtype));
        EXPECT_EQ(made.threads * lanes % static_cast<int>(plan.num_channels()), 0)
            << "all words of a thread begin with the same channel";
      }
      EXPECT_LE(made.threads, kMaxThreads);
      // An image of many rows is not one tile, or few multiprocessors would have work.
      if (made.tiles > 1) {
        EXPECT_LE(shared_bytes(made), kSharedBytes / 3);
      }
    });
  }
}

TEST(KernelPlan, PixelsAreJoinedWhereAWordOfEachPlaneShowsThem) {
  const auto joined = [](const CropPlan& crop, Layout input, DType dtype) {
    return make_kernel_plan(test::kernel_case(crop, 3, input, Layout::nchw, dtype)).joined;
  };
  const CropPlan small{.image_height = 32,
                       .image_width = 32,
                       .height = 32,
                       .width = 32,
                       .padding = 4,
                       .random_crop = true,
                       .flip = true};
  EXPECT_TRUE(joined(small, Layout::nhwc, DType::float16));
  EXPECT_FALSE(joined(small, Layout::nchw, DType::float16)) << "pixels are in planes";
  CropPlan whole{.image_height = 218, .image_width = 178, .height = 218, .width = 178};
  EXPECT_TRUE(joined(whole, Layout::nhwc, DType::float32));
  EXPECT_FALSE(joined(whole, Layout::nhwc, DType::float16))
      << "the second plane begins within a word";
  whole.flip = true;
  EXPECT_FALSE(joined(whole, Layout::nhwc, DType::float32)) << "words show pixels of two rows";
}

}  // namespace
}  // namespace chunkio::device
