#include "image/resize.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <new>
#include <random>
#include <string>

#include <gtest/gtest.h>
#include <libdeflate.h>

#include "support/resize_case.hpp"

namespace {

std::atomic<int> num_allocations = 0;

}  // namespace

// Counts, so that a test can say that there were none.
[[gnu::noinline]] void* operator new(std::size_t size) {
  ++num_allocations;
  if (void* const memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t /*size*/) noexcept {
  std::free(memory);
}

namespace chunkio::image {
namespace {

using Instructions = ResizePlan::Instructions;
using test::ResizeCase;

std::vector<Instructions> all_instructions() {
  std::vector<Instructions> all{Instructions::portable};
  if (ResizePlan::best() != Instructions::portable) all.push_back(ResizePlan::best());
  return all;
}

TEST(ResizePlan, EqualsPillow) {
  const std::string path = CHUNKIO_TESTS_DIR "/golden/resize/digests.json";
  std::ifstream file(path);
  ASSERT_TRUE(file) << path;
  int num_cases = 0;
  std::vector<ResizePlan> plans;
  for (const Instructions instructions : all_instructions()) plans.emplace_back(instructions);
  for (const auto& entry : nlohmann::json::parse(file)) {
    SCOPED_TRACE(entry.dump());
    const ResizeCase resize = test::resize_case(entry);
    for (ResizePlan& plan : plans) {
      const auto output = test::resized(plan, resize);
      EXPECT_EQ(libdeflate_crc32(0, output.data(), output.size()), entry["crc32"]);
    }
    ++num_cases;
  }
  EXPECT_EQ(num_cases, 296);
}

/// Sides of 1 to a few hundred, few of them large.
std::int32_t random_side(std::mt19937_64& random) {
  const auto below = [&](std::uint64_t n) { return static_cast<std::int32_t>(random() % n); };
  return 1 + below(std::array{8U, 64U, 300U}[random() % 3]);
}

ResizeCase random_case(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  ResizeCase resize;
  resize.source = {random_side(random), random_side(random)};
  resize.num_channels = 1 + random() % kMaxChannels;
  resize.seed = random() >> 1;
  const auto part = [&](Size size) {
    const auto rows = static_cast<std::int32_t>(1 + random() % static_cast<unsigned>(size.height));
    const auto columns =
        static_cast<std::int32_t>(1 + random() % static_cast<unsigned>(size.width));
    return Box{
        static_cast<std::int32_t>(random() % static_cast<unsigned>(size.height - rows + 1)),
        static_cast<std::int32_t>(random() % static_cast<unsigned>(size.width - columns + 1)), rows,
        columns};
  };
  resize.crop.box = part(resize.source);
  const auto side = [&](std::int32_t old) { return random() % 8 == 0 ? old : random_side(random); };
  const std::int32_t height = side(resize.crop.box.height);
  resize.crop.resized = {height, side(resize.crop.box.width)};
  resize.crop.window = part(resize.crop.resized);
  resize.crop.flipped = random() % 2 == 0;
  return resize;
}

TEST(ResizePlan, AllInstructionsGiveTheSameBits) {
  if (ResizePlan::best() == Instructions::portable) GTEST_SKIP() << "this processor has no others";
  ResizePlan portable(Instructions::portable);
  ResizePlan best;
  for (std::uint64_t seed = 0; seed < 10000; ++seed) {
    const ResizeCase resize = random_case(seed);
    ASSERT_EQ(test::resized(portable, resize), test::resized(best, resize)) << "seed " << seed;
  }
}

TEST(ResizePlan, WritesNothingBesideTheRowsOfTheOutput) {
  constexpr std::uint8_t kMark = 0xA5;
  for (const Instructions instructions : all_instructions()) {
    ResizePlan plan(instructions);
    for (std::uint64_t seed = 0; seed < 500; ++seed) {
      const ResizeCase resize = random_case(seed);
      const auto expected = test::resized(plan, resize);
      const auto source = test::source_image(resize);
      const test::BoxPixels box(resize, source, 0);
      const auto height = static_cast<std::size_t>(resize.crop.window.height);
      const std::size_t row_bytes = expected.size() / height;
      const std::size_t stride = row_bytes + 1 + seed % 7;
      std::vector<std::uint8_t> scratch(plan.scratch_bytes() + 1, kMark);
      std::vector<std::uint8_t> output(height * stride + 1, kMark);
      plan.resize(box.rows(), {output.data() + 1, stride}, scratch);
      for (std::size_t y = 0; y < height; ++y) {
        const auto row = output.begin() + static_cast<std::ptrdiff_t>(1 + y * stride);
        const auto end = row + static_cast<std::ptrdiff_t>(row_bytes);
        ASSERT_TRUE(
            std::equal(row, end, expected.begin() + static_cast<std::ptrdiff_t>(y * row_bytes)))
            << "seed " << seed << ", row " << y;
        ASSERT_TRUE(std::all_of(end, row + static_cast<std::ptrdiff_t>(stride),
                                [](std::uint8_t byte) { return byte == kMark; }))
            << "seed " << seed << ", row " << y;
      }
      ASSERT_EQ(output.front(), kMark);
      ASSERT_EQ(scratch.back(), kMark);
    }
  }
}

TEST(ResizePlan, SeesNoPixelOutsideOfTheBox) {
  for (const Instructions instructions : all_instructions()) {
    ResizePlan plan(instructions);
    for (std::uint64_t seed = 0; seed < 500; ++seed) {
      const ResizeCase resize = random_case(seed);
      const auto& box = resize.crop.box;
      const auto expected = test::resized(plan, resize);
      // The box where it lies in its image, rather than alone.
      const auto source = test::source_image(resize);
      const std::size_t stride =
          static_cast<std::size_t>(resize.source.width) * resize.num_channels;
      const std::uint8_t* const begin = source.data() + static_cast<std::size_t>(box.top) * stride +
                                        static_cast<std::size_t>(box.left) * resize.num_channels;
      std::vector<std::uint8_t> scratch(plan.scratch_bytes());
      std::vector<std::uint8_t> output(expected.size());
      plan.resize(
          {begin, stride},
          {output.data(), expected.size() / static_cast<std::size_t>(resize.crop.window.height)},
          scratch);
      ASSERT_EQ(output, expected) << "seed " << seed;
    }
  }
}

TEST(ResizePlan, AllocatesNothingForSizesItHasMet) {
  const ResizeCase first{{375, 500}, 3, 7, resized({0, 0, 375, 500}, {224, 224})};
  const ResizeCase second{{375, 500}, 3, 7, resized({9, 9, 300, 200}, {224, 224})};
  for (const Instructions instructions : all_instructions()) {
    ResizePlan plan(instructions);
    test::resized(plan, first);
    test::resized(plan, second);
    const auto source = test::source_image(first);
    std::vector<std::uint8_t> scratch;
    for (const ResizeCase* resize : {&first, &second}) {
      plan.prepare(resize->crop, 3);
      scratch.resize(std::max(scratch.size(), plan.scratch_bytes()));
    }
    std::vector<std::uint8_t> output(first.output_bytes());
    const int before = num_allocations;
    for (int round = 0; round < 3; ++round) {
      for (const ResizeCase* resize : {&first, &second}) {
        plan.prepare(resize->crop, 3);
        plan.resize({source.data(), 1500}, {output.data(), 224 * 3}, scratch);
      }
    }
    EXPECT_EQ(num_allocations, before);
  }
}

}  // namespace
}  // namespace chunkio::image
