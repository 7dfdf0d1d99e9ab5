/// One picture cropped, flipped, normalised and written: the CPU twin of the CUDA kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "device/augmentation.hpp"
#include "device/line_converter.hpp"
#include "device/normalize_plan.hpp"

namespace chunkio::device {

/// Immutable and thread-safe.
class PictureWriter {
 public:
  explicit PictureWriter(const NormalizePlan& plan,
                         LineConverter::Instructions instructions = LineConverter::best());

  /// Writes rows [first_row, first_row + num_rows) of the output of one sample.
  /// \param picture  uint8 [H,W,C] or [C,H,W].
  /// \param output   the whole output of the sample, [C,h,w] or [h,w,C].
  void write_rows(const std::uint8_t* picture, const Crop& crop, std::int64_t first_row,
                  std::int64_t num_rows, std::byte* output) const;

  [[nodiscard]] const NormalizePlan& plan() const noexcept { return plan_; }

 private:
  /// Output pixels that lie one behind the other, and where they come from.
  struct Run {
    std::size_t first_output = 0;   // Pixels of the output before it.
    std::size_t zeros_before = 0;   // Pixels of the padding.
    std::size_t first_picture = 0;  // Pixels of the picture before those that are taken.
    std::size_t num_pixels = 0;     // Taken from the picture.
    std::size_t zeros_after = 0;
    bool flipped = false;

    [[nodiscard]] std::size_t size() const noexcept {
      return zeros_before + num_pixels + zeros_after;
    }
  };

  [[nodiscard]] Run run_of_row(const Crop& crop, std::int64_t row) const noexcept;
  [[nodiscard]] bool is_direct(const Run& run) const noexcept;
  void convert_direct(const std::uint8_t* picture, const Run& run, std::byte* output) const;
  void stage(const std::uint8_t* picture, const Run& run, std::span<std::uint8_t> staged) const;
  void convert_staged(std::span<const std::uint8_t> staged, const Run& run,
                      std::byte* output) const;
  [[nodiscard]] std::byte* plane_output(std::byte* output, std::size_t channel,
                                        const Run& run) const noexcept;

  NormalizePlan plan_;
  LineConverter converter_;
  std::size_t num_channels_;
  std::size_t picture_pixels_;
  std::size_t output_pixels_;
  std::size_t element_bytes_;
};

}  // namespace chunkio::device
