/// How the kernel goes about its work: the rows that a block makes, and the shared memory it takes.
#pragma once

#include <cstdint>

#include "device/augmentation.hpp"
#include "device/normalize_plan.hpp"
#include "device/value.hpp"

namespace chunkio::device {

/// Of a block, at most.
inline constexpr int kMaxThreads = 256;
/// Threads that do the same at the same time.
inline constexpr int kWarp = 32;
/// What a thread moves at once, in bytes; it lies at a multiple of as many.
inline constexpr int kWordBytes = 16;

/// NormalizePlan as the kernel reads it, and how an image is cut into tiles: one a block.
struct KernelPlan {
  CropPlan crop;
  ChannelScale channels[kMaxChannels];
  std::int32_t planes;       ///< Of the input: 1, or one a channel.
  std::int32_t pixel_bytes;  ///< From one pixel of a plane to the next.
  std::int32_t row_words;    ///< Of shared memory for a staged row.
  std::int32_t tile_rows;    ///< Of the output, for a block.
  std::int32_t tiles;        ///< Of an image.
  std::int32_t threads;  ///< Of a block: whole warps, 3 n where the output interleaves 3 channels.
  bool in_order;         ///< Image i is that of task i, whatever its row: it was resized.
  /// The output interleaves channels; or the input does, and the pixels behind a word of a plane of
  /// the output lie in a row, as do those behind the same word of the other planes.
  bool joined;
  std::uint64_t width_inverse;      ///< 2^64 / crop.width, rounded up; 0 for 1.
  std::uint64_t row_words_inverse;  ///< Likewise.
};

[[nodiscard]] KernelPlan make_kernel_plan(const NormalizePlan& plan);
/// Of shared memory, for a block.
[[nodiscard]] std::int64_t shared_bytes(const KernelPlan& plan) noexcept;
/// Whether a row of the image fits into the shared memory of a block: up to 16,000 RGB pixels.
[[nodiscard]] bool fits_kernel(const NormalizePlan& plan);

/// Calls `use` with that one of the 36 forms of the kernel that makes the plan's output, as
/// template arguments: `use.template operator()<channels, dtype, output_layout, joined>()`.
template <class Use>
auto with_kernel_form(const NormalizePlan& plan, const KernelPlan& made, Use use) {
  const auto with_layout = [&]<int channels, DType dtype>() {
    if (plan.output == Layout::nhwc) {
      return use.template operator()<channels, dtype, Layout::nhwc, true>();
    }
    return made.joined ? use.template operator()<channels, dtype, Layout::nchw, true>()
                       : use.template operator()<channels, dtype, Layout::nchw, false>();
  };
  const auto with_dtype = [&]<int channels>() {
    switch (plan.dtype) {
      case DType::float16:
        return with_layout.template operator()<channels, DType::float16>();
      case DType::bfloat16:
        return with_layout.template operator()<channels, DType::bfloat16>();
      default:
        return with_layout.template operator()<channels, DType::float32>();
    }
  };
  switch (plan.num_channels()) {
    case 1:
      return with_dtype.template operator()<1>();
    case 2:
      return with_dtype.template operator()<2>();
    case 3:
      return with_dtype.template operator()<3>();
    default:
      return with_dtype.template operator()<4>();
  }
}

}  // namespace chunkio::device
