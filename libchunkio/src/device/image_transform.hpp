/// One image cropped, flipped, normalised and written: the CPU twin of the CUDA kernel.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/augmentation.hpp"
#include "device/normalize_plan.hpp"
#include "device/row_converter.hpp"

namespace chunkio::device {

/// Immutable and thread-safe.
class ImageTransform {
 public:
  explicit ImageTransform(const NormalizePlan& plan,
                          RowConverter::Instructions instructions = RowConverter::best());

  /// Writes rows [first_row, first_row + num_rows) of the output of one sample.
  /// \param image  uint8 [H,W,C] or [C,H,W].
  /// \param output   the whole output of the sample, [C,h,w] or [h,w,C].
  /// \param stores   after streaming ones, call base::store_fence() before telling another thread.
  /// \pre the rows are rows of the output. \throws std::bad_alloc.
  void write_rows(const std::uint8_t* image, const Crop& crop, std::int64_t first_row,
                  std::int64_t num_rows, std::byte* output, Stores stores = Stores::cached) const;

 private:
  /// Pixels that are to be converted, one behind the other: [n,C] or, of images [C,H,W] that stay
  /// so, C planes.
  struct Source {
    const std::uint8_t* values = nullptr;
    std::size_t plane_stride = 0;
  };

  [[nodiscard]] bool is_staged(const Crop& crop, std::int64_t first_row,
                               std::int64_t num_rows) const noexcept;
  void stage(const std::uint8_t* image, const Crop& crop, std::int64_t first_row,
             std::int64_t num_rows, std::uint8_t* staged) const;
  void convert(const Source& source, std::size_t num_pixels, bool reversed, Stores stores,
               std::size_t first_pixel, std::byte* output) const;

  NormalizePlan plan_;
  RowConverter converter_;
  std::size_t num_channels_;
  std::size_t image_pixels_;
  std::size_t output_pixels_;
  std::size_t element_bytes_;
};

}  // namespace chunkio::device
