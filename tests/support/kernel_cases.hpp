/// Plans, images and tasks on which the kernel is compared with its CPU twin: on a device, and on
/// a CPU thread by thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "device/augmentation.hpp"
#include "device/gpu.hpp"
#include "device/image_transform.hpp"
#include "device/kernel_plan.hpp"
#include "device/normalize_plan.hpp"
#include "device/resized_transform.hpp"
#include "image/resized_crop.hpp"

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

/// Boxes of any ratio and area are resized.
inline device::NormalizePlan resized_case(device::NormalizePlan plan) {
  plan.resized_crop = image::random_resized_crop_ranges({0, 1, 1.0 / 8, 8});
  return plan;
}

/// Images of which boxes are resized to outputs: smaller and larger ones, lines and single pixels;
/// so narrow and tall that columns come first.
inline std::vector<device::CropPlan> resized_kernel_crops() {
  return {{.image_height = 32, .image_width = 32, .height = 32, .width = 32, .flip = true},
          {.image_height = 61, .image_width = 83, .height = 24, .width = 20, .flip = true},
          {.image_height = 9, .image_width = 7, .height = 21, .width = 34, .flip = true},
          {.image_height = 300, .image_width = 11, .height = 5, .width = 9, .flip = true},
          {.image_height = 1, .image_width = 1, .height = 3, .width = 2},
          {.image_height = 40, .image_width = 50, .height = 1, .width = 1}};
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
      {.image_height = 180, .image_width = 50, .height = 180, .width = 50},
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
/// rows that begin and end within words, and such as do not.
inline std::vector<device::CropPlan> small_kernel_crops() {
  device::CropPlan crop{.image_height = 9,
                        .image_width = 11,
                        .height = 10,
                        .width = 9,
                        .padding = 3,
                        .random_crop = true,
                        .flip = true};
  device::CropPlan of_words = crop;
  of_words.width = 8;
  return {crop, of_words};
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
  std::vector<image::Box> boxes;  ///< Empty where nothing is resized.
  std::vector<std::byte> output;
  std::vector<float> output_labels;

  [[nodiscard]] static device::LabelPlan label_plan() {
    return {.values = kLabels, .input = DType::uint8, .output = DType::float32};
  }
};

/// What the CPU makes of a sample.
class SampleTwin {
 public:
  explicit SampleTwin(const device::NormalizePlan& plan) : plan_(plan), cropped_(plan) {
    if (plan.resized_crop) resized_.emplace(plan);
  }

  /// \param images, output  of which row `task.row` and row `i` are meant.
  /// \param boxes  null where nothing is resized.
  void write(const std::byte* images, const device::RowTask& task, const image::Box* boxes,
             std::int64_t i, std::byte* output) {
    const auto* const image =
        reinterpret_cast<const std::uint8_t*>(images) + task.row * plan_.image_bytes();
    std::byte* const to = output + i * plan_.output_bytes();
    if (resized_) {
      resized_->write(image, {boxes[i], task.crop}, memory_, to);
    } else {
      cropped_.write_rows(image, task.crop, 0, plan_.crop.height, to);
    }
  }

 private:
  device::NormalizePlan plan_;
  device::ImageTransform cropped_;
  std::optional<device::ResizedTransform> resized_;
  device::ResizedTransform::Memory memory_;
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
  SampleTwin twin(plan);
  for (std::int64_t i = 0; i < rows; ++i) {
    const device::Augmentation wanted = device::augmentation_of(plan, key, i, 0);
    const device::RowTask task{static_cast<std::int32_t>(random() % kImages), wanted.crop};
    batch.tasks.push_back(task);
    if (plan.resized_crop) batch.boxes.push_back(wanted.box);
    twin.write(batch.images.data(), task, batch.boxes.data(), i, batch.output.data());
    for (std::int64_t k = 0; k < KernelBatch::kLabels; ++k) {
      batch.output_labels.push_back(static_cast<float>(
          batch.labels[static_cast<std::size_t>(task.row * KernelBatch::kLabels + k)]));
    }
  }
  return batch;
}

}  // namespace chunkio::test
