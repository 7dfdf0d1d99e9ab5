/// One image of which a box is cut out, resized, flipped, normalised and written: the CPU twin of
/// the CUDA kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "device/image_transform.hpp"
#include "device/normalize_plan.hpp"
#include "image/resize.hpp"

namespace chunkio::device {

/// Immutable and thread-safe.
class ResizedTransform {
 public:
  /// What a thread works in. It grows to what the largest box needs, then nothing is allocated.
  struct Memory {
    explicit Memory(image::ResizePlan::Instructions instructions = image::ResizePlan::best())
        : plan(instructions) {}

    image::ResizePlan plan;
    std::vector<std::uint8_t> scratch;
    std::vector<std::uint8_t> resized;
    std::vector<std::uint8_t> pixels;  ///< Of planes that become pixels.
  };

  /// \pre plan.resized_crop.
  explicit ResizedTransform(const NormalizePlan& plan,
                            RowConverter::Instructions instructions = RowConverter::best());

  /// Writes the output of one sample.
  /// \param image  uint8 [H,W,C] or [C,H,W].
  /// \param output  [C,h,w] or [h,w,C].
  /// \param stores  as ImageTransform has it. \throws std::bad_alloc.
  void write(const std::uint8_t* image, const Augmentation& wanted, Memory& memory,
             std::byte* output, Stores stores = Stores::cached) const;

 private:
  /// uint8, flipped, in the axis order that convert_ takes.
  [[nodiscard]] const std::uint8_t* resize(const std::uint8_t* image, const Augmentation& wanted,
                                           Memory& memory) const;

  NormalizePlan plan_;
  ImageTransform convert_;
};

}  // namespace chunkio::device
