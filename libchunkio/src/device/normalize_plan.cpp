#include "device/normalize_plan.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include <chunkio/error.hpp>

namespace chunkio::device {
namespace {

constexpr std::int64_t kMaxPadding = std::int64_t{1} << 20;
constexpr std::int64_t kMaxSide = std::int64_t{1} << 28;  // Sums of sides and paddings fit int32.

[[noreturn]] void refuse(const DatasetInfo& info, const std::string& why) {
  throw Error(ErrorCode::invalid_argument, info.path + ": " + why);
}

/// One number for each channel. \param name  "mean" or "std".
void spread(std::vector<double>& values, const DatasetInfo& info, const std::string& name) {
  const auto channels = static_cast<std::size_t>(info.channels);
  if (values.size() == 1) values.resize(channels, values.front());
  if (values.size() != channels) {
    refuse(info, name + " has " + std::to_string(values.size()) + " numbers, the images have " +
                     std::to_string(channels) + " channels; give one number, or one for each");
  }
  if (!std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); })) {
    refuse(info, name + " must be finite");
  }
}

void complete_statistics(const DatasetInfo& info, NormalizeOptions& options) {
  if (options.mean.empty() != options.std.empty()) {
    refuse(info, std::string("only ") + (options.std.empty() ? "mean" : "std") +
                     " is given; give mean and std, or neither");
  }
  if (options.mean.empty()) {
    if (!info.statistics) {
      throw Error(ErrorCode::not_found,
                  info.path +
                      " says no mean and std of its channels; give both (mean = 0 and std = 1 "
                      "leave the scale 0 to 1)");
    }
    options.mean = info.statistics->mean;
    options.std = info.statistics->std;
  }
  spread(options.mean, info, "mean");
  spread(options.std, info, "std");
  for (const double std : options.std) {
    const auto scale = static_cast<float>(1 / (255 * std));
    if (!(std > 0) || !std::isfinite(scale)) {
      refuse(info, "std must be above 0, and large enough to divide by");
    }
  }
  for (std::size_t c = 0; c < options.mean.size(); ++c) {
    if (!(std::fabs(options.mean[c] / options.std[c]) < std::numeric_limits<float>::max())) {
      refuse(info, "mean is too large to be divided by std");
    }
  }
}

/// Of images that are resized, or of what they become.
std::int32_t resized_side(const DatasetInfo& info, std::int64_t side, const std::string& name) {
  if (side < 1 || side > image::kMaxSide) {
    refuse(info,
           name + " must be 1 to 65535 with random_resized_crop, got " + std::to_string(side));
  }
  return static_cast<std::int32_t>(side);
}

CropPlan plan_resized_crop(const DatasetInfo& info, const NormalizeOptions& options) {
  if (options.random_crop || options.padding != 0) {
    refuse(info, std::string("random_resized_crop excludes ") +
                     (options.random_crop ? "random_crop" : "padding") + "; leave one of them out");
  }
  const auto side = [&](std::int64_t crop, std::int64_t of_image, const std::string& name) {
    return resized_side(info, crop == 0 ? of_image : crop, name);
  };
  return {.image_height = resized_side(info, info.height, "the height of images"),
          .image_width = resized_side(info, info.width, "the width of images"),
          .height = side(options.crop_height, info.height, "crop_height"),
          .width = side(options.crop_width, info.width, "crop_width"),
          .flip = options.flip};
}

std::int32_t checked_side(const DatasetInfo& info, std::int64_t crop, std::int64_t image,
                          std::int64_t padding, const std::string& name) {
  if (crop < 0) refuse(info, name + " must be >= 0, got " + std::to_string(crop));
  const std::int64_t side = crop == 0 ? image : crop;
  if (side > image + 2 * padding) {
    refuse(info, name + " " + std::to_string(side) + " is larger than the image, " +
                     std::to_string(image) + ", with a padding of " + std::to_string(padding) +
                     " on both sides; lower it or raise padding");
  }
  return static_cast<std::int32_t>(side);
}

CropPlan plan_crop(const DatasetInfo& info, const NormalizeOptions& options) {
  if (options.padding < 0 || options.padding > kMaxPadding) {
    refuse(info, "padding must be between 0 and 2^20, got " + std::to_string(options.padding));
  }
  if (options.random_crop && options.padding == 0 && options.crop_height == 0 &&
      options.crop_width == 0) {
    refuse(
        info,
        "random_crop has no room to move in; give padding, or crop_height and crop_width below " +
            std::to_string(info.height) + " and " + std::to_string(info.width));
  }
  if (!options.random_crop && options.padding > 0 && options.crop_height <= info.height &&
      options.crop_width <= info.width) {
    refuse(info,
           "padding has no effect, since nothing of it is in the middle; set random_crop, or "
           "crop_height or crop_width above " +
               std::to_string(info.height) + " and " + std::to_string(info.width));
  }
  return {
      .image_height = static_cast<std::int32_t>(info.height),
      .image_width = static_cast<std::int32_t>(info.width),
      .height =
          checked_side(info, options.crop_height, info.height, options.padding, "crop_height"),
      .width = checked_side(info, options.crop_width, info.width, options.padding, "crop_width"),
      .padding = static_cast<std::int32_t>(options.padding),
      .random_crop = options.random_crop,
      .flip = options.flip};
}

}  // namespace

std::int64_t NormalizePlan::image_bytes() const noexcept {
  return std::int64_t{crop.image_height} * crop.image_width * num_channels();
}

std::int64_t NormalizePlan::output_bytes() const noexcept {
  return std::int64_t{crop.height} * crop.width * num_channels() *
         static_cast<std::int64_t>(size_of(dtype));
}

Shape NormalizePlan::output_shape(std::int64_t num_samples) const {
  const std::int64_t c = num_channels();
  return output == Layout::nchw ? Shape({num_samples, c, crop.height, crop.width})
                                : Shape({num_samples, crop.height, crop.width, c});
}

NormalizePlan NormalizePlan::of_resized() const {
  NormalizePlan rest = *this;
  rest.resized_crop.reset();
  rest.crop.image_height = crop.height;
  rest.crop.image_width = crop.width;
  return rest;
}

Augmentation augmentation_of(const NormalizePlan& plan, base::PhiloxKey key, std::int64_t sample_id,
                             std::uint32_t echo_pass) noexcept {
  if (!plan.resized_crop) return {.box = {}, .crop = crop_of(plan.crop, key, sample_id, echo_pass)};
  const image::Size size{plan.crop.image_height, plan.crop.image_width};
  return {.box = image::random_box(*plan.resized_crop, size, key, sample_id, echo_pass),
          .crop = {.flipped = plan.crop.flip && image::is_flipped(key, sample_id, echo_pass)}};
}

NormalizePlan make_normalize_plan(const DatasetInfo& info, NormalizeOptions& options) {
  if (options.dtype != DType::float32 && options.dtype != DType::float16 &&
      options.dtype != DType::bfloat16) {
    refuse(info, "dtype must be float32, float16 or bfloat16, got " +
                     std::string(to_string(options.dtype)));
  }
  require_images(info);
  if (info.channels > kMaxChannels) {
    throw Error(ErrorCode::unsupported, info.path + " has images of " +
                                            std::to_string(info.channels) +
                                            " channels; 1 to 4 can be normalised");
  }
  if (info.height > kMaxSide || info.width > kMaxSide) {
    throw Error(ErrorCode::unsupported,
                info.path + " has images of more than 2^28 rows or columns");
  }
  complete_statistics(info, options);
  NormalizePlan plan;
  plan.input = info.layout;
  plan.output = options.layout;
  plan.dtype = options.dtype;
  if (options.random_resized_crop) {
    plan.crop = plan_resized_crop(info, options);
    try {
      plan.resized_crop = image::random_resized_crop_ranges(*options.random_resized_crop);
    } catch (const Error& error) {
      refuse(info, error.what());
    }
  } else {
    plan.crop = plan_crop(info, options);
  }
  for (std::size_t c = 0; c < options.mean.size(); ++c) {
    plan.channels.push_back({.scale = static_cast<float>(1 / (255 * options.std[c])),
                             .bias = static_cast<float>(-options.mean[c] / options.std[c])});
  }
  return plan;
}

}  // namespace chunkio::device
