#include "device/kernel_plan.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace chunkio::device {
namespace {

/// Of shared memory for a block, if a row is not larger: several blocks fit on a multiprocessor.
/// What was measured to be fastest on an H100, for whole images and for parts of them.
constexpr std::int64_t kTileBytesOfWhole = std::int64_t{8} << 10;
constexpr std::int64_t kTileBytesOfPart = std::int64_t{16} << 10;
/// That a thread writes of a plane, or of interleaved channels, about: threads come in units. What
/// was measured to be fastest on an H200. Words of joined pixels are made so quickly that what a
/// thread does before counts.
constexpr std::int64_t kWordsOfJoined = 4;
constexpr std::int64_t kWordsOfOthers = 1;
/// What a block may have without asking for more.
constexpr std::int64_t kMaxTileBytes = std::int64_t{48} << 10;

/// 2^64 / divisor, rounded up; 0 for 1.
std::uint64_t inverse_of(std::int32_t divisor) noexcept {
  return std::numeric_limits<std::uint64_t>::max() / static_cast<std::uint64_t>(divisor) + 1;
}

}  // namespace

KernelPlan make_kernel_plan(const NormalizePlan& plan) {
  if (plan.resized_crop) {
    KernelPlan made = make_kernel_plan(plan.of_resized());
    made.in_order = true;
    return made;
  }
  const auto channels = static_cast<std::int32_t>(plan.channels.size());
  KernelPlan made{};
  made.crop = plan.crop;
  std::copy(plan.channels.begin(), plan.channels.end(), made.channels);
  const bool by_turns = plan.input == Layout::nhwc;
  made.planes = by_turns ? 1 : channels;
  made.pixel_bytes = by_turns ? channels : 1;
  // A row may begin at any byte of a word. Padding is staged, too.
  const std::int64_t longest = std::int64_t{plan.crop.width} * made.pixel_bytes + kWordBytes - 1;
  made.row_words = static_cast<std::int32_t>((longest + kWordBytes - 1) / kWordBytes);
  const std::int64_t row_bytes = std::int64_t{made.planes} * made.row_words * kWordBytes;
  const bool whole = plan.crop.width == plan.crop.image_width && plan.crop.padding == 0;
  made.tile_rows = static_cast<std::int32_t>(std::clamp<std::int64_t>(
      (whole ? kTileBytesOfWhole : kTileBytesOfPart) / row_bytes, 1, plan.crop.height));
  made.tiles = (plan.crop.height + made.tile_rows - 1) / made.tile_rows;
  const bool output_by_turns = plan.output == Layout::nhwc;
  const auto element_bytes = static_cast<std::int64_t>(size_of(plan.dtype));
  const std::int64_t row_values = std::int64_t{plan.crop.width} * (output_by_turns ? channels : 1);
  const bool rows_joined = whole && !plan.crop.random_crop && !plan.crop.flip;
  const bool words_in_rows = row_values * element_bytes % kWordBytes == 0;
  const bool planes_alike = row_values * plan.crop.height * element_bytes % kWordBytes == 0;
  made.joined = output_by_turns || (by_turns && planes_alike && (rows_joined || words_in_rows));
  // All words of a thread begin with the same channel.
  const std::int64_t words = made.tile_rows * row_values * element_bytes / kWordBytes /
                             (made.joined ? kWordsOfJoined : kWordsOfOthers);
  const std::int64_t unit = (output_by_turns && channels == 3 ? 3 : 2) * std::int64_t{kWarp};
  made.threads = static_cast<std::int32_t>(
      std::clamp((words + unit - 1) / unit * unit, unit, kMaxThreads / unit * unit));
  made.width_inverse = inverse_of(plan.crop.width);
  made.row_words_inverse = inverse_of(made.row_words);
  return made;
}

std::int64_t shared_bytes(const KernelPlan& plan) noexcept {
  return std::int64_t{plan.planes} * plan.tile_rows * plan.row_words * kWordBytes;
}

bool fits_kernel(const NormalizePlan& plan) {
  return shared_bytes(make_kernel_plan(plan)) <= kMaxTileBytes;
}

}  // namespace chunkio::device
