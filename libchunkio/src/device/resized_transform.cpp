#include "device/resized_transform.hpp"

namespace chunkio::device {
namespace {

bool planes_become_pixels(const NormalizePlan& plan) noexcept {
  return plan.num_channels() > 1 && plan.input == Layout::nchw && plan.output == Layout::nhwc;
}

NormalizePlan conversion(const NormalizePlan& plan) {
  NormalizePlan rest = plan.of_resized();
  if (planes_become_pixels(plan)) rest.input = Layout::nhwc;
  return rest;
}

}  // namespace

ResizedTransform::ResizedTransform(const NormalizePlan& plan,
                                   RowConverter::Instructions instructions)
    : plan_(plan), convert_(conversion(plan), instructions) {}

void ResizedTransform::write(const std::uint8_t* image, const Augmentation& wanted, Memory& memory,
                             std::byte* output, Stores stores) const {
  // Flips cost nothing while an image is resized.
  convert_.write_rows(resize(image, wanted, memory), Crop{}, 0, plan_.crop.height, output, stores);
}

const std::uint8_t* ResizedTransform::resize(const std::uint8_t* image, const Augmentation& wanted,
                                             Memory& memory) const {
  const CropPlan& sizes = plan_.crop;
  const auto channels = static_cast<std::size_t>(plan_.num_channels());
  const std::size_t planes = plan_.input == Layout::nchw ? channels : 1;
  const std::size_t pixel_bytes = channels / planes;
  const auto image_width = static_cast<std::size_t>(sizes.image_width);
  const std::size_t image_pixels = static_cast<std::size_t>(sizes.image_height) * image_width;
  const std::size_t output_pixels =
      static_cast<std::size_t>(sizes.height) * static_cast<std::size_t>(sizes.width);
  const std::size_t first_pixel = static_cast<std::size_t>(wanted.box.top) * image_width +
                                  static_cast<std::size_t>(wanted.box.left);

  image::ResizedCrop crop = image::resized(wanted.box, {sizes.height, sizes.width});
  crop.flipped = wanted.crop.flipped;
  memory.plan.prepare(crop, pixel_bytes);
  const auto grow = [](std::vector<std::uint8_t>& bytes, std::size_t size) {
    if (bytes.size() < size) bytes.resize(size);
  };
  grow(memory.scratch, memory.plan.scratch_bytes());
  grow(memory.resized, output_pixels * channels);
  for (std::size_t plane = 0; plane < planes; ++plane) {
    memory.plan.resize(
        {image + (plane * image_pixels + first_pixel) * pixel_bytes, image_width * pixel_bytes},
        {memory.resized.data() + plane * output_pixels,
         static_cast<std::size_t>(sizes.width) * pixel_bytes},
        memory.scratch);
  }
  if (!planes_become_pixels(plan_)) return memory.resized.data();
  grow(memory.pixels, output_pixels * channels);
  for (std::size_t plane = 0; plane < planes; ++plane) {
    const std::uint8_t* const from = memory.resized.data() + plane * output_pixels;
    std::uint8_t* const to = memory.pixels.data() + plane;
    for (std::size_t i = 0; i < output_pixels; ++i) to[i * channels] = from[i];
  }
  return memory.pixels.data();
}

}  // namespace chunkio::device
