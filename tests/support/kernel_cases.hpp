/// Plans, images and tasks on which the kernel is compared with its CPU twin: on a device, and on
/// a CPU thread by thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "device/augmentation.hpp"
#include "device/gpu.hpp"
#include "device/image_transform.hpp"
#include "device/kernel_plan.hpp"
#include "device/normalize_plan.hpp"

namespace chunkio::test {

inline device::NormalizePlan kernel_case(const device::CropPlan& crop, std::size_t channels,
                                         Layout input, Layout output, DType dtype) {
  device::NormalizePlan plan;
  plan.crop = crop;
  for (std::size_t c = 0; c < channels; ++c) {
    const auto i = static_cast<float>(c);
    plan.channels.push_back({.scale = 0.0171F + 0.001F * i, .bias = -2.117F + 0.1F * i});
  }
  plan.input = input;
  plan.output = output;
  plan.dtype = dtype;
  return plan;
}

/// Whole images and parts of them, one tile and many, aligned rows and others, more padding than
/// image.
inline std::vector<device::CropPlan> kernel_crops() {
  return {
      {.image_height = 32, .image_width = 32, .height = 32, .width = 32},
      {.image_height = 32,
       .image_width = 32,
       .height = 32,
       .width = 32,
       .padding = 4,
       .random_crop = true,
       .flip = true},
      {.image_height = 218, .image_width = 178, .height = 218, .width = 178, .flip = true},
      {.image_height = 218, .image_width = 178, .height = 160, .width = 101, .random_crop = true},
      {.image_height = 7, .image_width = 5, .height = 15, .width = 13, .padding = 4},
      {.image_height = 1, .image_width = 1, .height = 1, .width = 1},
      {.image_height = 3, .image_width = 700, .height = 3, .width = 699, .random_crop = true},
      {.image_height = 64,
       .image_width = 64,
       .height = 2,
       .width = 2,
       .padding = 60,
       .random_crop = true,
       .flip = true}};
}

/// A few hundred bytes, for tools that look at each access: padding on all sides, both directions,
/// rows that begin and end within words.
inline device::CropPlan small_kernel_crop() {
  return {.image_height = 9,
          .image_width = 11,
          .height = 10,
          .width = 9,
          .padding = 3,
          .random_crop = true,
          .flip = true};
}

inline std::string describe(const device::NormalizePlan& plan) {
  return std::to_string(plan.crop.image_height) + "x" + std::to_string(plan.crop.image_width) +
         " to " + std::to_string(plan.crop.height) + "x" + std::to_string(plan.crop.width) + ", " +
         std::to_string(plan.num_channels()) + " channels, " + std::string(to_string(plan.input)) +
         " to " + std::string(to_string(plan.output)) + " " + std::string(to_string(plan.dtype));
}

/// Calls `check` with the 48 plans of a crop: channels, layouts and types. Ends at a fatal failure.
template <class Check>
void for_each_kernel_case(const device::CropPlan& crop, Check check) {
  for (std::size_t channels = 1; channels <= 4; ++channels) {
    for (const Layout input : {Layout::nhwc, Layout::nchw}) {
      for (const Layout output : {Layout::nhwc, Layout::nchw}) {
        for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16}) {
          const device::NormalizePlan plan = kernel_case(crop, channels, input, output, dtype);
          SCOPED_TRACE(describe(plan));
          check(plan);
          if (::testing::Test::HasFatalFailure()) return;
        }
      }
    }
  }
}

/// An image of one line.
inline device::NormalizePlan line_case(std::int32_t width, std::size_t channels, Layout input) {
  return kernel_case({.image_height = 1, .image_width = width, .height = 1, .width = width},
                     channels, input, Layout::nchw, DType::float32);
}

/// The widest line that the kernel takes.
inline std::int32_t widest_line(std::size_t channels, Layout input) {
  std::int32_t fits = 1;
  std::int32_t too_wide = 1 << 20;
  while (too_wide - fits > 1) {
    const std::int32_t middle = fits + (too_wide - fits) / 2;
    (device::fits_kernel(line_case(middle, channels, input)) ? fits : too_wide) = middle;
  }
  return fits;
}

/// What the kernel is given for one output batch, and what the CPU twin makes of it.
struct KernelBatch {
  static constexpr std::int64_t kLabels = 3;  ///< Of an image, uint8, delivered as float32.

  std::vector<std::byte> images;
  std::vector<std::byte> labels;
  std::vector<device::RowTask> tasks;
  std::vector<std::byte> output;
  std::vector<float> output_labels;

  [[nodiscard]] static device::LabelPlan label_plan() {
    return {.values = kLabels, .input = DType::uint8, .output = DType::float32};
  }
};

/// Random images, of which `rows` random ones are used, each cropped and flipped as it falls.
inline KernelBatch kernel_batch(const device::NormalizePlan& plan, std::int64_t rows,
                                std::mt19937& random) {
  constexpr std::int32_t kImages = 5;
  KernelBatch batch;
  const auto fill = [&random](std::vector<std::byte>& bytes, std::int64_t size) {
    bytes.resize(static_cast<std::size_t>(size));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  };
  fill(batch.images, kImages * plan.image_bytes());
  fill(batch.labels, kImages * KernelBatch::kLabels);
  batch.output.resize(static_cast<std::size_t>(rows * plan.output_bytes()));
  const base::PhiloxKey key = base::augmentation_key(random(), 3);
  const device::ImageTransform writer(plan);
  for (std::int64_t i = 0; i < rows; ++i) {
    const device::RowTask task{static_cast<std::int32_t>(random() % kImages),
                               device::crop_of(plan.crop, key, i, 0)};
    batch.tasks.push_back(task);
    writer.write_rows(
        reinterpret_cast<const std::uint8_t*>(batch.images.data()) + task.row * plan.image_bytes(),
        task.crop, 0, plan.crop.height, batch.output.data() + i * plan.output_bytes());
    for (std::int64_t k = 0; k < KernelBatch::kLabels; ++k) {
      batch.output_labels.push_back(static_cast<float>(
          batch.labels[static_cast<std::size_t>(task.row * KernelBatch::kLabels + k)]));
    }
  }
  return batch;
}

}  // namespace chunkio::test
