/// Options of normalising, checked and in the form that CPU code and kernels take them.
#pragma once

#include <vector>

#include <chunkio/dataset.hpp>
#include <chunkio/normalizer.hpp>

#include "device/augmentation.hpp"
#include "device/value.hpp"

namespace chunkio::device {

struct NormalizePlan {
  CropPlan crop;
  std::vector<ChannelScale> channels;  ///< 1 to kMaxChannels.
  Layout input = Layout::nhwc;
  Layout output = Layout::nchw;
  DType dtype = DType::float32;

  [[nodiscard]] std::int64_t num_channels() const noexcept {
    return static_cast<std::int64_t>(channels.size());
  }
  /// [B,C,h,w] or [B,h,w,C].
  [[nodiscard]] Shape output_shape(std::int64_t num_samples) const;
  [[nodiscard]] std::int64_t image_bytes() const noexcept;
  /// Of the output of one sample.
  [[nodiscard]] std::int64_t output_bytes() const noexcept;
};

/// \param options  mean and std are completed: one number for each channel.
/// \throws Error invalid_argument, not_found: see Normalizer.
[[nodiscard]] NormalizePlan make_normalize_plan(const DatasetInfo& info, NormalizeOptions& options);

}  // namespace chunkio::device
