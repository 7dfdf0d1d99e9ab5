#include "device/resize_kernel_plan.hpp"

#include <algorithm>

#include "base/checked_math.hpp"
#include "image/resize_weights.hpp"

namespace chunkio::device {
namespace {

/// So many samples that a GPU is busy, and so few that what the passes leave for each other may
/// stay in its cache.
constexpr std::int64_t kGroupBytes = std::int64_t{64} << 20;
/// Of what the kernels read in words.
constexpr std::int64_t kAlignment = 16;

/// Where the parts of scratch memory begin, and where the last one ends.
struct Parts {
  std::int64_t between;
  std::int64_t axes;
  std::int64_t end;
};

Parts parts_of(const ResizeKernelPlan& plan, std::int64_t rows) noexcept {
  const auto aligned = [](std::int64_t bytes) {
    return base::ceil_divide(bytes, kAlignment) * kAlignment;
  };
  const std::int64_t planes = rows * plan.planes * plan.pixel_bytes;
  // Behind the resized images there is something that may be read, see kKernelSlack.
  const std::int64_t between = aligned(planes * plan.output_pixels());
  const std::int64_t axes = aligned(between + planes * plan.between_pixels());
  return {between, axes,
          axes + rows * plan.axis_numbers() * static_cast<std::int64_t>(sizeof(std::int32_t))};
}

}  // namespace

ResizeKernelPlan make_resize_kernel_plan(const NormalizePlan& plan) {
  const CropPlan& sizes = plan.crop;
  const auto channels = static_cast<std::int32_t>(plan.num_channels());
  const bool by_turns = plan.input == Layout::nhwc;
  const auto taps = [](std::int32_t input, std::int32_t output) {
    return static_cast<std::int32_t>(image::most_taps(input, output));
  };
  return {.image_height = sizes.image_height,
          .image_width = sizes.image_width,
          .output = {sizes.height, sizes.width},
          .planes = by_turns ? 1 : channels,
          .pixel_bytes = by_turns ? channels : 1,
          .row_taps = taps(sizes.image_width, sizes.width),
          .column_taps = taps(sizes.image_height, sizes.height)};
}

std::int64_t resize_group_rows(const NormalizePlan& plan, std::int64_t rows) {
  const std::int64_t sample_bytes = parts_of(make_resize_kernel_plan(plan), 1).end;
  return std::clamp<std::int64_t>(kGroupBytes / sample_bytes, 1, rows);
}

std::int64_t resize_scratch_bytes(const NormalizePlan& plan, std::int64_t rows) {
  if (!plan.resized_crop) return 0;
  return parts_of(make_resize_kernel_plan(plan), resize_group_rows(plan, rows)).end;
}

ResizeGroup resize_group(const NormalizePlan& plan, const LabelPlan& labels, const BatchWork& work,
                         std::int64_t first) {
  const std::int64_t most = resize_group_rows(plan, work.num_rows);
  const Parts parts = parts_of(make_resize_kernel_plan(plan), most);
  ResizeGroup group;
  group.resize = {.images = work.images,
                  .tasks = work.tasks + first,
                  .boxes = work.boxes + first,
                  .num_rows = std::min(most, work.num_rows - first),
                  .axes = reinterpret_cast<std::int32_t*>(work.scratch + parts.axes),
                  .between = work.scratch + parts.between,
                  .resized = work.scratch};
  group.normalize = {.images = group.resize.resized,
                     .labels = work.labels,
                     .tasks = group.resize.tasks,
                     .num_rows = group.resize.num_rows,
                     .output = work.output + first * plan.output_bytes(),
                     .output_labels = work.output_labels + first * labels.output_bytes()};
  return group;
}

}  // namespace chunkio::device
