/// Cases of tests/scripts/resize_reference.py: what is resized, and how.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include <nlohmann/json.hpp>

#include "image/resize.hpp"
#include "support/pixels.hpp"

namespace chunkio::test {

struct ResizeCase {
  image::Size source;
  std::size_t num_channels = 0;
  std::uint64_t seed = 0;
  image::ResizedCrop crop;

  [[nodiscard]] std::size_t output_bytes() const {
    return static_cast<std::size_t>(crop.window.height) *
           static_cast<std::size_t>(crop.window.width) * num_channels;
  }
};

inline ResizeCase resize_case(const nlohmann::json& entry) {
  const auto box = [&](const char* name) {
    const auto& sides = entry[name];
    return image::Box{sides[0], sides[1], sides[2], sides[3]};
  };
  return {
      .source = {entry["source"][0], entry["source"][1]},
      .num_channels = entry["source"][2],
      .seed = entry["seed"],
      .crop = {
          box("box"), {entry["resized"][0], entry["resized"][1]}, box("window"), entry["flipped"]}};
}

/// Pixels of the source, uint8 [H,W,C].
inline std::vector<std::uint8_t> source_image(const ResizeCase& resize) {
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(resize.source.height) *
                                   static_cast<std::size_t>(resize.source.width) *
                                   resize.num_channels);
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    auto value = std::to_integer<std::uint8_t>(
        pixel(static_cast<std::int64_t>(resize.seed), static_cast<std::int64_t>(i)));
    if (resize.seed % 2 == 1) value = value < 128 ? 0 : 255;
    if (resize.seed % 16 == 0) value = 255;
    pixels[i] = value;
  }
  return pixels;
}

/// A box alone, in rows of `gap` bytes more than they need, with not a byte behind the last: so
/// that a sanitizer sees reads beyond it.
class BoxPixels {
 public:
  BoxPixels(const ResizeCase& resize, const std::vector<std::uint8_t>& source, std::size_t gap) {
    const auto& box = resize.crop.box;
    const std::size_t row_bytes = static_cast<std::size_t>(box.width) * resize.num_channels;
    const auto height = static_cast<std::size_t>(box.height);
    stride_ = row_bytes + gap;
    bytes_ = std::make_unique<std::uint8_t[]>((height - 1) * stride_ + row_bytes);
    for (std::size_t y = 0; y < height; ++y) {
      const std::size_t from =
          ((static_cast<std::size_t>(box.top) + y) * static_cast<std::size_t>(resize.source.width) +
           static_cast<std::size_t>(box.left)) *
          resize.num_channels;
      std::memcpy(bytes_.get() + y * stride_, source.data() + from, row_bytes);
    }
  }

  [[nodiscard]] image::Rows<const std::uint8_t> rows() const { return {bytes_.get(), stride_}; }

 private:
  std::unique_ptr<std::uint8_t[]> bytes_;
  std::size_t stride_ = 0;
};

/// What a plan makes of a case, uint8 [H,W,C].
inline std::vector<std::uint8_t> resized(image::ResizePlan& plan, const ResizeCase& resize) {
  const std::vector<std::uint8_t> source = source_image(resize);
  const std::size_t gap = resize.seed / 16 % 5;
  const BoxPixels box(resize, source, gap);
  plan.prepare(resize.crop, resize.num_channels);
  std::vector<std::uint8_t> scratch(plan.scratch_bytes());
  std::vector<std::uint8_t> output(resize.output_bytes());
  const std::size_t row_bytes =
      static_cast<std::size_t>(resize.crop.window.width) * resize.num_channels;
  plan.resize(box.rows(), {output.data(), row_bytes}, scratch);
  return output;
}

}  // namespace chunkio::test
