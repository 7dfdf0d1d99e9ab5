/// Options of normalising, checked and in the form that CPU code and kernels take them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <chunkio/dataset.hpp>
#include <chunkio/normalizer.hpp>

#include "device/augmentation.hpp"
#include "device/value.hpp"
#include "image/resized_crop.hpp"

namespace chunkio::device {

struct NormalizePlan {
  CropPlan crop;
  /// A random box of each image is resized to the output. Absent: `crop` cuts the output out.
  std::optional<image::RandomResizedCrop> resized_crop;
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
  /// What is left to do when boxes were resized: images that are as large as the output.
  [[nodiscard]] NormalizePlan of_resized() const;
};

/// What becomes of a sample.
struct Augmentation {
  image::Box box;  ///< Of the image, where it is resized.
  Crop crop;       ///< Of the image, or of the resized box.
};

/// \param key  augmentation_key() of the epoch. \param echo_pass  as crop_of().
[[nodiscard]] Augmentation augmentation_of(const NormalizePlan& plan, base::PhiloxKey key,
                                           std::int64_t sample_id,
                                           std::uint32_t echo_pass) noexcept;

/// \param options  mean and std are completed: one number for each channel.
/// \throws Error invalid_argument, not_found: see Normalizer.
[[nodiscard]] NormalizePlan make_normalize_plan(const DatasetInfo& info, NormalizeOptions& options);

}  // namespace chunkio::device
